//! What fio prints but JSON does not allow: `nan` and `inf` from divisions by zero, and lines of
//! its own warnings between the lines of the document (axboe/fio#731, #1685).

/// `text` with those blanked out, every other byte where it was; none when there is nothing to do.
pub(super) fn repair_json(text: &str) -> Option<String> {
    let mut bytes = text.as_bytes().to_vec();
    let mut changed = false;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let range = at..at + line.len();
        at = range.end;
        let body = line.trim();
        let Some(first) = body.chars().next() else {
            continue;
        };
        // fio starts every line of its JSON with one of these.
        if !matches!(first, '{' | '}' | '[' | ']' | '"' | ',' | '-' | '0'..='9') {
            blank(&mut bytes[range]);
            changed = true;
            continue;
        }
        let value = body.rsplit(':').next().unwrap_or(body);
        let value = value.trim().trim_end_matches(',').trim_end();
        if matches!(value, "nan" | "-nan" | "inf" | "-inf")
            && let Some(offset) = line.rfind(value)
        {
            let start = range.start + offset;
            bytes[start..start + value.len()].fill(b' ');
            // fio prints 0 for the same fields when nothing was counted.
            bytes[start] = b'0';
            changed = true;
        }
    }
    changed.then(|| String::from_utf8_lossy(&bytes).into_owned())
}

/// Spaces instead of everything but the line's end.
fn blank(line: &mut [u8]) {
    for byte in line.iter_mut().filter(|byte| **byte != b'\n') {
        *byte = b' ';
    }
}
