# Writes a tar archive (POSIX ustar, with pax headers for long names) of what it is told, a record a line:
#   F path, then = before each line    a file        D path          a directory
#   L path TAB target                  a link        S path TAB kind TAB major TAB minor TAB size
#   V path TAB total TAB available     free space    X path TAB errno TAB reason
#   Y path TAB what cat complained     could not be read
#   C, then A O E Z                    a command and its answer
#   Q pattern, P command               what was asked for at all
#   W complaint                        of the script itself: something may be missing
#   !                                  the end: without it the last part is not written
# What is no file is written last, as assay-capture.json. "\002" stands for a byte 0.

function bytes(text,   i, sum) { sum = 0; for (i = 1; i <= length(text); i++) sum += ORD[substr(text, i, 1)]; return sum }
function fill(text, width,   pad) { pad = width - length(text); return text substr(ZERO, 1, pad) }
function header(name, size, type, target,   head, tail, sum) {
    head = fill(name, 100) "0000644" NUL "0000000" NUL "0000000" NUL sprintf("%011o", size) NUL "00000000000" NUL
    tail = type fill(target, 100) "ustar" NUL "00" fill("", 247)
    gsub(NUL, "", name)
    sum = bytes(name) + bytes(target) + bytes("0000644") + 2 * bytes("0000000") + bytes(sprintf("%011o", size)) \
        + bytes("00000000000") + 8 * 32 + bytes(type) + bytes("ustar") + bytes("00")
    printf "%s", head sprintf("%06o", sum) NUL " " tail
}
function pad_to_block(size) { if (size % 512) printf "%s", substr(ZERO, 1, 512 - size % 512) }
function pax(key, value,   text, n) {
    text = " " key "=" value "\n"; n = length(text)
    n += length(n + length(n))
    return n text
}
function member(path, size, type, target,   name, extra) {
    name = substr(path, 2)
    extra = ""
    if (length(name) > 100) extra = pax("path", name)
    if (length(target) > 100) extra = extra pax("linkpath", target)
    if (extra != "") {
        header("long-name", length(extra), "x", ""); printf "%s", extra; pad_to_block(length(extra))
    }
    header(substr(name, 1, 100), size, type, substr(target, 1, 100))
}
function whole_file(path, n,   i, size) {
    size = 0
    for (i = 1; i <= n; i++) size += length(content[i]) + 1
    member(path, size, "0", "")
    for (i = 1; i <= n; i++) print content[i]
    pad_to_block(size)
}
function done() { if (open_file != "") { seen[open_file] = 1; whole_file(open_file, lines); open_file = ""; lines = 0 } }
function json(text,   i, c, out) {
    if (text !~ /[\\"\001-\037\177]/) return "\"" text "\""
    out = ""
    for (i = 1; i <= length(text); i++) {
        c = substr(text, i, 1)
        if (c == "\\" || c == "\"") out = out "\\" c
        else if (ORD[c] < 32 || ORD[c] == 127) out = out sprintf("\\u%04x", ORD[c])
        else out = out c
    }
    return "\"" out "\""
}
function fault(path, errno, reason) {
    if (path in faulty) return
    faulty[path] = 1
    errors[++error_n] = json(path) ":{" (errno == "" ? "" : "\"errno\":" (errno + 0) ",") "\"reason\":" json(reason) "}"
    # So that the directory shows the name.
    if (!(path in seen)) { seen[path] = 1; member(path, 0, "0", "") }
}
# Reasons of the kernel, with their numbers; a shell says some of them shorter.
function unread(path, words,   reason, at) {
    reason = words
    while ((at = index(reason, ": "))) reason = substr(reason, at + 2)
    if (tolower(reason) ~ /^no such file/) return
    if (reason in ERROR_NUMBER) fault(path, ERROR_NUMBER[reason], reason)
    else fault(path, "", "cannot be read")
}
function section(name, list, n, open, close_with, last,   i) {
    index_line[++index_n] = json(name) ":" open
    for (i = 1; i <= n; i++) index_line[++index_n] = list[i] (i < n ? "," : "")
    index_line[++index_n] = close_with (last ? "" : ",")
}

BEGIN {
    NUL = "\002"
    for (i = 1; i < 256; i++) ORD[sprintf("%c", i)] = i
    ERROR_NUMBER["Operation not permitted"] = 1; ERROR_NUMBER["No such process"] = 3; ERROR_NUMBER["Input/output error"] = 5
    ERROR_NUMBER["No such device or address"] = 6; ERROR_NUMBER["Permission denied"] = 13; ERROR_NUMBER["Device or resource busy"] = 16
    ERROR_NUMBER["No such device"] = 19; ERROR_NUMBER["Not a directory"] = 20; ERROR_NUMBER["Is a directory"] = 21
    ERROR_NUMBER["Invalid argument"] = 22; ERROR_NUMBER["File name too long"] = 36; ERROR_NUMBER["Too many levels of symbolic links"] = 40
    ERROR_NUMBER["Operation not supported"] = 95; ERROR_NUMBER["Stale file handle"] = 116
    ZERO = NUL; while (length(ZERO) < 1024) ZERO = ZERO ZERO
}
{ tag = substr($0, 1, 1); rest = substr($0, 3) }
tag == "=" { content[++lines] = substr($0, 2); next }
{ done() }
tag == "F" { if (rest in seen) rest = ""; open_file = rest; lines = 0; next }
tag == "D" { if (!(rest in seen)) { seen[rest] = 1; member(rest "/", 0, "5", "") }; next }
tag == "L" { at = index(rest, "\t"); name = substr(rest, 1, at - 1); if (!(name in seen)) { seen[name] = 1; member(name, 0, "2", substr(rest, at + 1)) }; next }
tag == "S" {
    n = split(rest, f, "\t")
    if (!(f[1] in stated)) {
        stated[f[1]] = 1
        stats[++stat_n] = json(f[1]) ":{\"kind\":" json(f[2]) ",\"size\":" (f[5] + 0 == f[5] ? f[5] : 0) \
            ",\"dev\":{\"major\":0,\"minor\":0},\"rdev\":{\"major\":" (f[3] + 0) ",\"minor\":" (f[4] + 0) "}}"
    }
    next
}
tag == "V" { n = split(rest, f, "\t"); spaces[++space_n] = json(f[1]) ":{\"total\":" f[2] ",\"available\":" f[3] "}"; next }
tag == "X" { n = split(rest, f, "\t"); fault(f[1], f[2], f[3]); next }
tag == "Y" {
    rest = substr($0, 2); at = index(rest, "\t")
    if (at) { unread(substr(rest, 1, at - 1), substr(rest, at + 1)); next }
    # Of many files at once; busybox says: can\047t open \047PATH\047: REASON
    sub(/^[^:]*: /, "", rest); sub(/^can\047t open \047/, "", rest)
    at = index(rest, ": ")
    if (at) { path = substr(rest, 1, at - 1); sub(/\047$/, "", path); unread(path, substr(rest, at + 2)) }
    next
}
# The size of a page, as the vector of a process says it (AT_PAGESZ, getauxval(3)).
tag == "U" { member("/proc/self/auxv", 32, "0", ""); printf "%s", "\006" fill("", 7) fill(rest, 8) fill("", 16); pad_to_block(32); next }
tag == "Q" { patterns[++pattern_n] = json(rest); next }
tag == "P" { names[++name_n] = json(rest); next }
tag == "W" { troubles[++trouble_n] = json(substr($0, 2)); next }
tag == "C" { words = complained = ""; parts = 0; next }
tag == "A" { words = words (words == "" ? "" : ",") json(substr($0, 2)); next }
# The text of a command is kept line by line: awk joins long texts slowly.
tag == "O" { part[++parts] = substr($0, 2); next }
tag == "E" { complained = complained substr($0, 2) "\n"; next }
tag == "Z" {
    status = substr($0, 2)
    said = "{\"argv\":[" words "],"
    if (status == 124) said = said "\"error\":" json("no end after @@SECONDS@@ s: killed") "}"
    else {
        answers[++answer_n] = (answer_n > 1 ? "," : "") said "\"status\":" (status + 0) ",\"stderr\":" json(complained) ",\"lines\":["
        for (i = 1; i <= parts; i++) answers[++answer_n] = json(part[i]) (i < parts ? "," : "")
        said = "]}"
    }
    answers[++answer_n] = (status == 124 && answer_n > 1 ? "," : "") said
    next
}
tag == "!" { is_whole = 1; next }
END {
    done()
    if (!is_whole) { print "assay-collector: ended before it was done" | "cat 1>&2"; exit 1 }
    index_line[++index_n] = "{\"schema\":1,\"collector\":" json(VERSION) ","
    section("asked", patterns, pattern_n, "[", "]", 0)
    section("tools", names, name_n, "[", "]", 0)
    if (trouble_n) section("troubles", troubles, trouble_n, "[", "]", 0)
    section("stat", stats, stat_n, "{", "}", 0)
    section("statfs", spaces, space_n, "{", "}", 0)
    section("errors", errors, error_n, "{", "}", 0)
    index_line[++index_n] = "\"commands\":["
    for (i = 1; i <= answer_n; i++) index_line[++index_n] = answers[i]
    index_line[++index_n] = "]}"
    for (i = 1; i <= index_n; i++) content[i] = index_line[i]
    whole_file("/assay-capture.json", index_n)
    printf "%s", ZERO
}
