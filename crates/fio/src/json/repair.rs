//! Repairs output of fio that is not valid JSON. Such output contains `nan` and `inf` from divisions by zero, or lines
//! of warnings within the document (axboe/fio#731, #1685).

/// Replaces the invalid parts of `text` so that all other bytes keep their positions. `None` if no repair is needed.
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
        // Every line of fio's JSON starts with one of these.
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
            // fio prints 0 for the same fields if nothing was counted.
            bytes[start] = b'0';
            changed = true;
        }
    }
    changed.then(|| String::from_utf8_lossy(&bytes).into_owned())
}

/// Replaces all characters except the line end by spaces.
fn blank(line: &mut [u8]) {
    for byte in line.iter_mut().filter(|byte| **byte != b'\n') {
        *byte = b' ';
    }
}
