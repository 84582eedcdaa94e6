# Reads what it is asked for and lets through only what is known to be harmless. Requests stand on
# standard input, one a line:
#   B class path    the beginning of text that the shell got for this path; its lines follow, O before each,
#                   then a dot, or a hyphen when it could not be read to its end
#   M class path    the text of this path follows later: it stands here in what is printed
#   H way mark      the beginning of what head prints about all of those paths, with this way in front of each name,
#                   up to the mark; then N path TAB complaint for a text that is not whole, and V, or G when none of
#                   them is to be taken
#   R mark          the beginning of lines as they are, up to the mark
#   C class         the beginning of a command; A before each word, O before each line of its output,
#                   E before each of its complaints, Z before its exit status
# Everything else is passed on as it is. No class lets through what it does not know.

function list(text, table,   n, words, i) {
    n = split(text, words, " ")
    for (i = 1; i <= n; i++) table[words[i]] = 1
}
function plain(text) {
    return length(text) <= 128 && text ~ "^[A-Za-z0-9_.,:+/%-]+$" && !index(text, "//")
}
function is_path(text) {
    return text ~ /^\// && text !~ /[?=& "\047]/ && !index(text, "//") && length(text) <= 8192
}
function number(text) { return text ~ /^[+-]?[0-9]+$/ && length(text) <= 19 }
function trim(text) { sub(/^[ \t\r]+/, "", text); sub(/[ \t\r]+$/, "", text); return text }
# A quotation mark at each end, whichever.
function bare(text) { gsub(/^["\047]+/, "", text); gsub(/["\047]+$/, "", text); return text }
function all_plain(text,   n, words, i) {
    n = split(text, words, " ")
    for (i = 1; i <= n; i++) if (!plain(words[i])) return 0
    return 1
}
function short(line) {
    if (all_plain(line)) return line
    return (trim(line) !~ /[ \t]/ && length(line) <= 64) ? line : "(value withheld)"
}
function pattern(text) { text = bare(text); gsub(/[][*?]/, "-", text); return plain(text) }
function names_a_secret(name,   joined, n, words, i) {
    name = tolower(name); joined = name; gsub(/[^a-z0-9]/, "", joined)
    if (joined ~ /passw|passphrase|secret|token|credential|cookie|apikey|privatekey|accesskey|authoriz/) return 1
    n = split(name, words, /[^a-z]+/)
    for (i = 1; i <= n; i++) if (words[i] in SECRET) return 1
    return 0
}

# ---- lines of files, by class -------------------------------------------------------------------

# Those with many lines come first.
function line_of(class, line) {
    if (class == "packages") return packages(line)
    if (class == "spam") return spam(line)
    if (class == "whole") return line
    if (class == "short") return short(line)
    if (class == "numbers") return numbers(line)
    if (class == "cpuinfo") return cpuinfo(line)
    if (class == "comm") return (line == "" || is_qemu(trim(line))) ? line : "(left out)"
    if (class == "mapper") return mapper(line)
    if (class == "sysctl") return sysctl(line)
    if (class == "modprobe") return modprobe(line)
    if (class == "release") return release(line)
    if (class == "apk") return apk(line)
    if (class == "started") return (line ~ /^btime [0-9]+$/ && length(line) <= 24) ? line : ""
    if (class == "swaps") return swaps(line)
    if (class == "cron") return cron(line)
    if (class == "maps") return maps(line)
    if (class == "group") return group(line)
    if (class == "flags") return line ~ /^flags:[ \t]*[0-7]+$/ ? line : ""
    if (class == "certificate") return certificate(line)
    if (class == "lighttpd") return lighttpd(line)
    if (class == "dovecot") return dovecot(line)
    if (class == "session") return session(line)
    if (class == "nut") return nut(line)
    if (class == "upsmon") return upsmon(line)
    if (class == "pam-sshd") return pam_sshd(line)
    if (class == "hosts-order") return hosts_order(line)
    if (class == "domain") return domain(line)
    if (class == "database") return database(line)
    if (class == "vpn") return vpn(line)
    if (class == "ssh") return ssh(line)
    if (class == "master") { split("", MAIL_CLASS); return master(line) }
    if (class == "guest") return guest(line)
    if (class == "storage") return storage(line)
    if (class == "words") return words_of(line)
    if (class == "mounts") return mounts(line)
    if (class == "fstab") return fstab(line)
    return ""
}

function numbers(line,   n, words, i) {
    n = split(line, words, " ")
    for (i = 1; i <= n; i++) if (!number(words[i])) return "(value withheld)"
    return line
}
function cpuinfo(line,   name) {
    name = trim(substr(line, 1, index(line ":", ":") - 1))
    return (name == "processor" || name == "model name" || name == "microcode" || name == "flags" || \
        name == "Features" || name == "physical id" || name == "core id") ? line : ""
}
function is_qemu(name) { return name ~ /^qemu-system-/ || name == "kvm" || name == "qemu-kvm" || name == "qemu" }
function mapper(line,   n, parts) {
    if (line == "") return ""
    n = split(line, parts, "-")
    if (n >= 3 && parts[1] == "CRYPT" && parts[2] ~ /^(LUKS1|LUKS2|PLAIN|BITLK|TCRYPT)$/) return "CRYPT-" parts[2] "-"
    if (n >= 2 && plain(parts[1]) && length(parts[1]) <= 8) return parts[1] "-"
    return "(left out)"
}
function sysctl(line,   at, name) {
    at = index(line, "=")
    if (!at) return ""
    name = trim(substr(line, 1, at - 1)); sub(/^-+/, "", name); gsub("/", ".", name)
    return (sysctl_asked(name) && kernel_number(trim(substr(line, at + 1)))) ? line : ""
}
function kernel_number(text) { return number(text) || text ~ /^-?0[xX][0-9a-fA-F]+$/ }
# A name with a star stands for several settings.
function sysctl_asked(name,   one, shape) {
    if (name in SYSCTL) return 1
    if (name !~ /^[a-z0-9_.*]+$/ || !index(name, "*")) return 0
    shape = name; gsub(/[.]/, "[.]", shape); gsub(/[*]/, "[^.]*", shape)
    for (one in SYSCTL) if (one ~ ("^" shape "$")) return 1
    return 0
}
# A line may go on in the next one, whose module is that of this one.
function modprobe(line,   end, n, words, i, at, name, value, begin, module) {
    end = ""
    if (line ~ /\\$/) { end = "\\"; line = substr(line, 1, length(line) - 1) }
    n = split(line, words, " ")
    if (carried != "") { module = carried; begin = line ~ /^[ \t]/ ? " " : ""; i = 1 }
    else {
        if (n < 2 || words[1] != "options" || !plain(words[2])) return end
        module = words[2]; begin = "options " module " "; i = 3
    }
    carried = end == "" ? "" : module
    if (end != "" && line ~ /[ \t]$/ && i <= n) end = " " end
    for (at = i; i <= n; i++) {
        if (i > at) begin = begin " "
        name = words[i]; value = "1"
        if (index(name, "=")) { value = substr(name, index(name, "=") + 1); name = substr(name, 1, index(name, "=") - 1) }
        # Quotation marks are no part of a value.
        if (module_value(module, name, bare(value))) begin = begin words[i]
        else if (plain(name) && index(words[i], "=")) begin = begin name "=(withheld)"
        else begin = begin "(withheld)=(withheld)"
    }
    return begin end
}
function module_value(module, name, value) {
    gsub("-", "_", module)
    return module in MODULE && !names_a_secret(name) && plain(value)
}
function release(line,   at, name, value) {
    at = index(line, "=")
    if (!at) return ""
    name = substr(line, 1, at - 1); value = bare(substr(line, at + 1))
    if (name == "PRETTY_NAME") return line
    return ((name == "ID" || name == "VERSION_ID") && length(value) <= 24 && value ~ /^[A-Za-z0-9._-]*$/) ? line : ""
}
function packages(line,   value) {
    if (line !~ /^[PSV][a-z]+: /) return ""
    value = substr(line, index(line, ": ") + 2)
    if (line ~ /^Package: /) {
        asked = value in PACKAGE
        if (!asked) asked = ++others <= MOST_PACKAGES && length(value) <= 80 && value ~ /^[A-Za-z0-9._+-]+$/
        return asked ? line : ""
    }
    if (line ~ /^Status: /) return (asked && length(value) <= 60 && value ~ /^[a-z -]*$/) ? line : ""
    if (line ~ /^Version: /) return (asked && length(value) <= 80 && value ~ /^[A-Za-z0-9.+~^:_-]+$/) ? line : ""
    return ""
}
function apk(line,   value) {
    value = substr(line, 3)
    if (line ~ /^P:/) {
        asked = ++others <= MOST_PACKAGES && length(value) <= 80 && value ~ /^[A-Za-z0-9._+-]+$/
        return asked ? line : ""
    }
    return (line ~ /^V:/ && asked && length(value) <= 80 && value ~ /^[A-Za-z0-9.+~^:_-]+$/) ? line : ""
}
function swaps(line,   n, words, i, device, out) {
    n = split(line, words, " ")
    if (!n || words[1] == "Filename") return line
    device = words[1] ~ "^/dev/[a-z0-9_/-]*$"
    if (!device && words[1] != "/swapfile") words[1] = "/(left-out)"
    if (n > 6 || (words[2] != "partition" && words[2] != "file")) return ""
    out = words[1] "\t" words[2]
    for (i = 3; i <= n; i++) { if (!number(words[i])) return ""; out = out "\t" words[i] }
    return out
}
function cron(line,   n, tasks, i, out) {
    if (line ~ /^[ \t]*#/) return ""
    out = ""
    n = split(TASKS, tasks, "|")
    for (i = 1; i <= n; i++) if (index(line, tasks[i])) out = out (out == "" ? "" : " ") tasks[i]
    return out
}
function maps(line,   path) {
    if (line !~ / \(deleted\)$/) return ""
    path = substr(line, index(line, "/"), length(line))
    sub(/ \(deleted\)$/, "", path)
    if (path !~ /^(\/usr\/lib\/|\/lib\/|\/usr\/lib64\/|\/lib64\/|\/usr\/local\/lib\/)/) return ""
    if (path !~ /\.so$/ && !index(path, ".so.")) return ""
    return (length(path) <= 200 && path ~ "^[A-Za-z0-9/._+-]*$") ? path " (deleted)" : ""
}
function group(line,   n, parts, i) {
    if (line !~ /^0::\/system\.slice\//) return ""
    n = split(substr(line, 4), parts, "/")
    for (i = n; i > 2; i--) if (parts[i] ~ /\.service$/) break
    return (i > 2 && length(parts[i]) <= 200 && parts[i] ~ /^[A-Za-z0-9._+@-]*$/) ? "0::/system.slice/" parts[i] : ""
}
function certificate(line,   n, words, i) {
    n = split(line, words, " ")
    if (line !~ /^certificate -?[0-9]+ -?[0-9]+ [A-Za-z0-9.-]+ [0-9]+ [A-Za-z0-9.-]+ (itself|another)( (next|gap|end) (fetch|-))?$/ || (n != 7 && n != 9)) return ""
    for (i = 2; i <= 5; i++) if (i != 4 && (length(words[i]) > 18 || words[i] ~ /^-?0[0-9]|^-0/)) return ""
    if (n == 7) line = line " end -"
    return length(words[6]) <= 40 ? line : ""
}
# A statement of Apache, with the lines that it goes on in.
function apache(line,   n, words, first, rest, low) {
    line = trim(line)
    if (line ~ /^<\//) { first = substr(line, 3); sub(/>+$/, "", first); first = trim(first); return section_name(first) ? "</" first ">" : "</Section>" }
    if (line ~ /^</) return apache_section(line)
    n = split(line, words, " ")
    if (n < 1) return ""
    low = tolower(words[1]); first = n > 1 ? words[2] : ""
    if (low ~ /^sslcertificate(chain|key)?file$/) {
        rest = trim(substr(line, length(words[1]) + 1)); gsub(/^"+|"+$/, "", rest)
        return rest == "" ? "" : words[1] " " kept_path(rest)
    }
    rest = trim(substr(line, length(words[1]) + 1)); gsub(/^"+|"+$/, "", rest)
    n = split(rest, words, " "); first = n ? words[1] : ""
    if (low ~ /^ssl(protocol|ciphersuite)$/) { if (of_tls(rest)) return substr(line, 1, length(low)) " " spaced(words, n); return "" }
    if (low == "sslengine") return tolower(first) ~ /^(on|off|optional)$/ ? substr(line, 1, length(low)) " " first : ""
    if (low == "include" || low == "includeoptional") return substr(line, 1, length(low)) " " (pattern(rest) ? rest : "${withheld}")
    if (low == "serverroot") return file_name(rest) ? substr(line, 1, length(low)) " " rest : ""
    if (low == "loadmodule" || low == "define" || low == "undefine") return apache_name(first) ? substr(line, 1, length(low)) " " first : ""
    return ""
}
function spaced(words, n,   i, text) { text = ""; for (i = 1; i <= n; i++) text = text (i > 1 ? " " : "") words[i]; return text }
function section_name(text) { return length(text) <= 24 && text ~ /^[A-Za-z]+$/ }
function apache_name(text) { return length(text) <= 40 && text ~ /^[A-Za-z0-9_.]+$/ }
function apache_section(line,   n, words, about) {
    line = substr(line, 2); sub(/>+$/, "", line)
    n = split(line, words, " ")
    if (n < 1 || !section_name(words[1])) return "<Section left-out>"
    about = n > 1 ? words[2] : ""; sub(/^!+/, "", about)
    if (tolower(words[1]) == "ifversion") {
        about = n > 1 ? words[2] : ""; if (n > 2) about = about " " words[3]
        return "<" words[1] " " (n <= 3 && about ~ /^[0-9!<>=. ]*$/ ? about : "left-out") ">"
    }
    if (tolower(words[1]) ~ /^if(module|define)$/ && apache_name(about)) return "<" words[1] " " words[2] ">"
    return "<" words[1] " left-out>"
}
# Names of protocols and ciphers, and what stands between them.
function of_tls(text) { return length(text) <= 512 && text ~ /^[A-Za-z0-9:!+@=_., -]+$/ }
function quoted(text,   at) {
    sub(/^[ \t]+/, "", text)
    if (substr(text, 1, 1) != "\"") return ""
    text = substr(text, 2)
    at = index(text, "\"")
    if (at) text = substr(text, 1, at - 1)
    return of_tls(text) ? text : ""
}
function lighttpd(line,   n, names, i, rest, at, value, kept) {
    line = trim(line); kept = ""
    if (line ~ /^#/) return ""
    n = split("ssl.cipher-list ssl.use-sslv2 ssl.use-sslv3", names, " ")
    for (i = 1; i <= n; i++) {
        if (index(line, names[i]) != 1) continue
        rest = substr(line, length(names[i]) + 1); sub(/^[ \t]+/, "", rest)
        value = substr(rest, 1, 1) == "=" ? quoted(substr(rest, 2)) : ""
        if (value != "") kept = kept (kept == "" ? "" : " ") names[i] " = \"" value "\""
    }
    n = split("MinProtocol Protocol CipherString", names, " ")
    for (i = 1; i <= n; i++) {
        at = index(line, "\"" names[i] "\"")
        if (!at) continue
        rest = substr(line, at + length(names[i]) + 2); sub(/^[ \t]+/, "", rest)
        value = substr(rest, 1, 2) == "=>" ? quoted(substr(rest, 3)) : ""
        if (value != "") kept = kept (kept == "" ? "" : " ") "\"" names[i] "\" => \"" value "\""
    }
    return kept
}
function file_name(text) { return is_path(text) && length(text) <= 200 && text ~ "^[A-Za-z0-9/._+*@-]*$" }
# The path, or that there is one.
function kept_path(text) { return file_name(text) ? text : "(withheld)" }
function dovecot_word(name, value) {
    if (name == "dovecot_config_version") return length(value) <= 12 && value ~ /^[0-9.]*$/
    value = bare(value)
    if (name == "ssl") return value ~ /^(yes|no|required)$/
    if (name ~ /^(ssl_min_protocol|ssl_protocols|ssl_cipher_list)$/) return of_tls(value)
    return name ~ /^(disable_plaintext_auth|auth_allow_cleartext)$/ && value ~ /^(yes|no)$/
}
# Of a block of Dovecot whether it is a filter, and of a network whether it is this machine.
function filter_head(text,   n, words) {
    n = split(text, words, " ")
    if (n < 1 || words[1] !~ /^(protocol|local|remote|local_name)$/) return "block {"
    if (n < 2) words[2] = ""
    if (words[2] == "127.0.0.1" || words[2] == "127.0.0.0/8" || words[2] == "::1") return words[1] " " words[2] " {"
    return words[1] " " (words[1] == "protocol" && words[2] ~ /^[a-z0-9]*$/ ? words[2] : "left-out") " {"
}
function dovecot(line,   at, name, value, sign) {
    line = trim(line)
    if (line ~ /^#/) return ""
    if (line == "}") return line
    if (line ~ /\{$/) { sub(/\{+$/, "", line); return filter_head(trim(line)) }
    if (line ~ /^!include(_try)?[ \t]/) return pattern(trim(substr(line, line ~ /^!include_try/ ? 13 : 9))) ? line : ""
    at = index(line, "=")
    if (!at) return ""
    name = trim(substr(line, 1, at - 1)); value = trim(substr(line, at + 1))
    if (dovecot_word(name, value)) return line
    if (name !~ /^(ssl_cert|ssl_server_cert_file|ssl_key|ssl_server_key_file)$/) return ""
    value = bare(value); sign = sub(/^<+/, "", value); value = trim(value)
    return sign || value ~ /^\// ? substr(line, 1, at - 1) "= <" kept_path(value) : ""
}
# The mode alone, and that a supply is watched or a command given: users and passwords stand beside them.
function nut(line,   value) {
    value = trim(line)
    sub(/^export [ \t]*/, "", value)
    if (value !~ /^MODE=/) return ""
    value = substr(value, 6)
    sub(/[ \t#;].*$/, "", value)
    value = bare(value)
    return value ~ /^(none|standalone|netserver|netclient|controlled|manual)$/ ? "MODE=" value : ""
}
function upsmon(line,   n, words) {
    n = split(line, words, " ")
    return (n && words[1] ~ /^(MONITOR|SHUTDOWNCMD)$/) ? words[1] : ""
}
# Known words and the signs between them; any other word is an x.
function words_of(line,   out) {
    out = ""
    while (match(line, /[^] \t\r\f=;{}"\047,[<>!#()|]+/)) {
        out = out substr(line, 1, RSTART - 1) known_word(substr(line, RSTART, RLENGTH))
        line = substr(line, RSTART + RLENGTH)
    }
    return out line
}
function known_word(word,   low, begin, longest) {
    low = tolower(word); longest = ""
    if (low in WORD) return word
    if (low ~ /:$/) { sub(/:+$/, "", low); if (low in WORD) return word; low = tolower(word) }
    for (begin in WORD_BEGIN) if (index(low, begin) == 1 && length(begin) > length(longest)) longest = begin
    return longest "x"
}
function session(line,   words, n, i) {
    if (!index(line, "pam_systemd.so")) return ""
    n = split(line, words, " ")
    for (i = 1; i <= n; i++) if (words[i] !~ /^#*-?(session)?$/ && words[i] !~ /^(optional|required|pam_systemd\.so)$/) return ""
    return line
}
function pam_sshd(line,   n, words, i, name) {
    n = split(line, words, " ")
    if (words[1] != "auth" && words[1] != "-auth") return ""
    for (i = 2; i <= n; i++) {
        name = words[i]; sub(/^.*\//, "", name)
        if (name in SECOND) return "auth required " name
    }
    return ""
}
function hosts_order(line,   n, words, i, out) {
    sub(/#.*$/, "", line); line = trim(line)
    if (line !~ /^hosts:/) return ""
    n = split(substr(line, 7), words, " "); out = "hosts:"
    for (i = 1; i <= n; i++) if (words[i] in RESOLVER) out = out " " words[i]
    return out
}
function domain(line,   n, words, i, name) {
    n = split(line, words, " ")
    if (words[1] != "search" && words[1] != "domain") return ""
    for (i = 2; i <= n; i++) {
        name = tolower(words[i]); sub(/\.+$/, "", name)
        if (name == "local") return "search local"
    }
    return ""
}
# Samba: a line with those in which it goes on stands where it begins; names of shares are numbered.
function samba_file(n,   i, line, begin, joined, more, one) {
    for (one in share_number) delete share_number[one]
    shares = 0; begin = 0; joined = ""
    for (i = 1; i <= n; i++) {
        line = text_of[i]; sub(/[ \t\r]+$/, "", line)
        if (!begin && line ~ /^[ \t\r]*[#;]/) continue
        if (!begin) { begin = i; joined = "" }
        more = line ~ /\\$/
        joined = joined (more ? substr(line, 1, length(line) - 1) : line)
        if (!more) { out[begin] = samba(joined); begin = 0 }
    }
    if (begin) out[begin] = samba(joined)
}
function samba(line,   text, at, name, value, joined, keep) {
    text = trim(line)
    if (text ~ /^\[/) {
        at = index(text, "]")
        return at ? "[" share_name(substr(text, 2, at - 2)) "]" : ""
    }
    at = index(line, "=")
    if (!at) return ""
    name = trim(substr(line, 1, at - 1)); value = trim(substr(line, at + 1))
    joined = tolower(name); gsub(/[ \t\r]/, "", joined)
    if (joined == "include" || joined == "configfile") keep = plain(value) && index(value, "/etc/samba/") == 1
    else if (joined == "path" || joined == "directory") keep = value in SMB_SYSTEM
    else if (joined == "copy") {
        text = tolower(value); gsub(/[ \t\r]+/, " ", text)
        if (text in SMB_SECTION || text in share_number) return name " = " share_name(text)
        keep = 0
    }
    else if (joined == "validusers") keep = value == ""
    else if (joined in SMB_ACCOUNT) keep = value == "root" || value == "nobody"
    else if (joined in SMB) { text = tolower(value); gsub(/[ \t\r]+/, "_", text); keep = text in SMB_VALUE }
    else return ""
    return keep ? line : name " = (left-out)"
}
function share_name(name) {
    name = tolower(trim(name)); gsub(/[ \t\r]+/, " ", name)
    if (name == "global" || name == "globals") return "global"
    if (name in SMB_SECTION) return name
    if (!(name in share_number)) share_number[name] = ++shares
    return "share-" share_number[name]
}
# Settings of databases: a name, perhaps a sign, a word that may stand in quotation marks.
function database(line,   name, rest, key, quote) {
    line = trim(line)
    if (line ~ /^\[/) {
        if (!index(line, "]")) return ""
        name = substr(line, 2, index(line, "]") - 2); sub(/[ \t\r]+$/, "", name); key = name
        sub(/-[0-9.]*$/, "", key)
        return (key in DB_GROUP || name in DB_GROUP) ? "[" name "]" : "[left-out]"
    }
    match(line, /^[A-Za-z0-9_.!-]*/)
    name = substr(line, 1, RLENGTH); rest = trim(substr(line, RLENGTH + 1))
    if (name == "") return ""
    sub(/^=/, "", rest); rest = trim(rest); quote = substr(rest, 1, 1)
    if (quote == "\"" || quote == "\047") {
        rest = substr(rest, 2)
        if (index(rest, quote)) rest = substr(rest, 1, index(rest, quote) - 1)
    } else sub(/[ \t#;].*$/, "", rest)
    key = tolower(name)
    if (key ~ /^(!include|!includedir|include|include_dir|include_if_exists)$/) return rest == "" ? "" : key " " (plain(rest) ? rest : "(left-out)")
    name = key; gsub("-", "_", name); key = name
    while (key ~ /^(loose|skip|disable|enable)_/) sub(/^[a-z]+_/, "", key)
    if (!(key in DATABASE)) return ""
    if (rest == "") return name
    if (name == "data_directory" || name == "datadir") return name " = " (plain(rest) ? rest : "(withheld)")
    return name " = " ((length(rest) <= 12 && rest ~ /^[A-Za-z0-9]+$/) ? rest : "(withheld)")
}
# Of a rule its kind, its name, numbers, and words that a check knows; no pattern.
function spam(line,   n, words, i, out, m, parts, zone, last, type) {
    if (line ~ /^[ \t]*#/) return ""
    n = split(line, words, " ")
    if (n < 2) return ""
    if (words[1] == "loadplugin") {
        if (words[2] !~ /^Mail::SpamAssassin::Plugin::[A-Za-z]+$/) return ""
        return substr(words[2], 29) in PLUGIN ? "loadplugin " words[2] : ""
    }
    if (length(words[2]) > 80 || words[2] !~ /^[A-Za-z0-9_]+$/) return ""
    if (words[1] == "score") {
        out = ""
        for (i = 3; i <= n && words[i] !~ /^#/; i++) {
            type = words[i]
            if (type ~ /^\(.*\)$/) type = substr(type, 2, length(type) - 2)
            sub(/^[+-]+/, "", type)
            if (length(type) > 12 || type !~ /^[0-9.]+$/) return ""
            out = out " " words[i]
        }
        return out == "" ? "" : "score " words[2] out
    }
    if (!(words[1] in RULE_KIND)) return ""
    out = ""; last = ""
    if (tolower(line) ~ ANY_CLOSED) for (i = 3; i <= n; i++) {
        m = split(words[i], parts, /[,"()\047]/)
        for (type = 1; type <= m; type++) {
            zone = closed(parts[type])
            if (zone != "" && zone != last) { out = out " " zone; last = zone }
        }
    }
    type = ""
    for (i = 3; i <= n; i++) if (words[i] == "zip-by-type") type = " zip-by-type"
    if (words[3] == "Content-Type") for (i = 4; i < n; i++) if (words[i] ~ /=~$/ && words[i + 1] ~ /^\/zip\//) type = " zip-by-type"
    return words[1] " " words[2] out type
}
# The closed list of DNS that a word names.
function closed(word,   zone) {
    sub(/[=*}].*$/, "", word); sub(/^\{+/, "", word); sub(/\.+$/, "", word); word = tolower(word)
    if (length(word) > 255) return ""
    for (zone in CLOSED) if (word == zone || substr(word, length(word) - length(zone)) == "." zone) return zone
    return ""
}
function vpn(line,   n, words, option, value) {
    n = split(line, words, " ")
    if (!n) return ""
    option = words[1]; sub(/^--/, "", option)
    if (option in VPN_FLAG) return option
    if (!(option in VPN)) return ""
    if (n == 1 || words[2] ~ /^[#;]/) return option
    value = bare(words[2])
    return option " " (vpn_value(option, value) ? value : "(withheld)")
}
function vpn_value(option, value,   n, parts, i, one, family) {
    if (value == "" || length(value) > 200) return 0
    if (!(option in VPN_CIPHER)) return length(value) <= 80 && (value ~ /^[A-Z0-9.:-]+$/ || value ~ /^(no|yes|none|adaptive|lzo|lz4|lz4-v2|stub|stub-v2|migrate)$/)
    n = split(value, parts, ":")
    for (i = 1; i <= n; i++) {
        one = toupper(parts[i]); sub(/^[?]/, "", one); family = one; sub(/[^A-Z].*$/, "", family)
        if (length(one) > 32 || one !~ /^[A-Z0-9-]+$/ || !(family in VPN_FAMILY)) return 0
    }
    return 1
}
function guest(line,   at, key, n, parts, i, kept, text) {
    at = index(line, ":")
    if (!at) return line ~ /^\[/ ? "[]" : ""
    key = substr(line, 1, at - 1)
    if (key == "args") {
        # Of words for QEMU only the type of the processor, of several the last.
        n = split(trim(substr(line, at + 1)), parts, " "); kept = ""
        for (i = 1; i < n; i++) if (parts[i] ~ /^--?cpu$/ && loose(parts[i + 1])) kept = "args: -cpu " parts[i + 1]
        return kept
    }
    if (key == "cpu" || key == "machine" || key == "scsihw" || key == "arch" || key == "ostype" || key == "kvm") return loose(trim(substr(line, at + 1))) ? line : ""
    if (key !~ /^(virtio|sata|ide|scsi)[0-9]+$/) return ""
    # A number of one byte.
    text = key; gsub(/[a-z]/, "", text); sub(/^0+/, "", text)
    if (text + 0 > 255) return ""
    n = split(trim(substr(line, at + 1)), parts, ",")
    kept = loose(trim(parts[1])) ? without_name(trim(parts[1])) : "none"
    for (i = 2; i <= n; i++) {
        text = trim(parts[i])
        if (text ~ /^(cache|aio|iothread|discard|detect_zeroes|media|snapshot|ro|m?bps[a-z_]*|iops[a-z_]*)(=|$)/ && loose(text)) kept = kept "," text
    }
    return key ": " kept
}
# A volume without the name of its image, unless it is one that Proxmox gives, and without a serial number.
function without_name(volume,   dir, stem, end) {
    if (!match(volume, "/[^/]*$")) return volume
    dir = substr(volume, 1, RSTART - 1); stem = substr(volume, RSTART + 1); end = ""
    if (dir ~ "^/dev" && dir !~ "^/dev/disk") return volume
    if (match(stem, /\.(raw|qcow2|qcow|vmdk|img|iso)$/)) { end = substr(stem, RSTART); stem = substr(stem, 1, RSTART - 1) }
    if (dir !~ "^/dev" && stem ~ /^((vm|base)-[0-9]+-disk-[0-9]+|vm-[0-9]+-cloudinit)$/ && length(stem) <= 30) return volume
    return dir "/left-out" end
}
function loose(text) { gsub(/[=;]/, "-", text); return plain(text) }
function storage(line,   n, words) {
    if (!all_plain(line)) return ""
    n = split(line, words, " ")
    if (line !~ /^[ \t]/) return line
    return words[1] ~ /^(pool|vgname|thinpool|path|sparse|nocow)$/ ? line : ""
}

# sshd_config(5) and ssh_config(5).
function ssh(line,   text, key, low, value, indent, n, words, i, out, one, two) {
    text = trim(line)
    if (text == "" || text ~ /^#/) return ""
    # Quotation marks that do not close make it another text than it seems, as a whole.
    if (text ~ /["\047]/) {
        one = text; two = text
        n = gsub(/"/, "", one); i = gsub(/\047/, "", two)
        if (n % 2 || i % 2 || (n && i)) { bad = 1; return "" }
    }
    indent = line; sub(/[^ \t].*$/, "", indent)
    if (!match(text, /^[A-Za-z0-9]+/)) return ""
    key = substr(text, 1, RLENGTH); low = tolower(key)
    value = substr(text, RLENGTH + 1)
    if (value !~ /^[ \t=]/) return ""
    sub(/^[ \t]*=?[ \t]*/, "", value); sub(/[ \t]+#.*$/, "", value); value = trim(value)
    if (low == "match") return indent key " " (tolower(value) == "all" ? "all" : ssh_others(value) ? "User other-than-root" : "(left out)")
    if (low == "host") {
        n = split(value, words, " "); out = n > 0
        for (i = 1; i <= n; i++) out = out && (words[i] == "localhost" || words[i] == "127.0.0.1" || words[i] == "::1" || words[i] == "127.*")
        return indent key " " (value == "*" || out ? value : "(left out)")
    }
    if (low == "include") {
        n = split(value, words, " "); out = ""
        for (i = 1; i <= n; i++) if (pattern(words[i])) { gsub(/^["\047]+|["\047]+$/, "", words[i]); out = out " " words[i] }
        return out == "" ? "" : indent key out
    }
    if (low == "challengeresponseauthentication") low = "kbdinteractiveauthentication"
    if (low == "pubkeyacceptedkeytypes") low = "pubkeyacceptedalgorithms"
    if (low == "authenticationmethods") return indent key " " ssh_methods(value)
    if (low ~ /^(allow|deny)(users|groups)$/) return indent key " " ssh_accounts(low, value)
    if (low in SSH_LIST) return indent key " " algorithms(bare(value))
    if (low in SSH_WORD) return indent key " " ssh_word(low, bare(value))
    return low in SSH_GLOBAL ? indent key " withheld" : ""
}
# Whether a Match block is for users of whom none is root.
function ssh_others(value,   n, words, m, i, j, one, all, users, names, at, denied, only) {
    n = split(value, words, /[ \t]+/); m = 0
    for (i = 1; i <= n; i++) {
        at = index(words[i], "=")
        if (at) { all[++m] = substr(words[i], 1, at - 1); all[++m] = substr(words[i], at + 1) } else all[++m] = words[i]
    }
    for (i = 1; i < m; i++) {
        if (tolower(all[i]) != "user") continue
        users = all[i + 1]; gsub(/^"+|"+$/, "", users)
        if (users == "" || users ~ /left-out/) continue
        n = split(users, names, ","); denied = 0; only = 0
        for (j = 1; j <= n; j++) {
            one = names[j]
            if (one ~ /^!/) { if (fits("root", substr(one, 2))) denied = 1 }
            else if (fits("root", one)) only = 1
        }
        if (denied || !only) return 1
    }
    return 0
}
# Of a list of accounts which patterns mean root, or groups that every system has.
function ssh_accounts(low, value,   n, words, m, names, i, j, at, account, host, kept, one) {
    m = split(low ~ /groups$/ ? SYSTEM_GROUPS : "root", names, " ")
    n = split(value, words, " "); kept = ""
    for (i = 1; i <= n; i++) {
        account = bare(words[i]); host = ""
        at = index(account, "@")
        if (m == 1 && at) { account = substr(account, 1, at - 1); host = "@left-out" }
        one = ""
        for (j = 1; j <= m; j++) if (fits(names[j], account)) one = one (one == "" ? "" : " ") names[j] host
        kept = kept (i > 1 ? " " : "") (one == "" ? "left-out" : one)
    }
    return kept
}
# Whether a name of letters fits a pattern of `*`, `?` and letters.
function fits(name, glob,   i, c, re) {
    re = ""
    for (i = 1; i <= length(glob); i++) {
        c = substr(glob, i, 1)
        if (c == "*") re = re ".*"
        else if (c == "?") re = re "."
        else if (c ~ /[A-Za-z]/) re = re c
        else return 0
    }
    return name ~ ("^" re "$")
}
function ssh_methods(value,   n, words, m, parts, i, j, kept, name, device, at) {
    n = split(value, words, " "); kept = ""
    for (i = 1; i <= n; i++) {
        words[i] = bare(words[i])
        m = split(words[i], parts, ",")
        for (j = 1; j <= m; j++) {
            at = index(parts[j], ":"); name = at ? substr(parts[j], 1, at - 1) : parts[j]; device = at ? substr(parts[j], at + 1) : ""
            if (!(name in SSH_METHOD) || device !~ /^(pam|bsdauth|skey)?$/) return "withheld"
        }
        kept = kept (i > 1 ? " " : "") words[i]
    }
    return kept
}
function algorithms(value,   n, words, i, out, text, name) {
    n = split(value, words, ","); out = ""
    for (i = 1; i <= n; i++) {
        text = words[i]; sub(/^[+^-]+/, "", text); name = text; sub(/@.*$/, "", name)
        if (text != name && text !~ /@openssh\.com$/) continue
        if (words[i] == "@openssh.com" || (length(name) <= 64 && name ~ /^[a-z0-9.*-]*$/)) out = out (out == "" ? "" : ",") words[i]
    }
    return out
}
function ssh_word(key, word,   low) {
    low = tolower(word)
    if (word == "" || low == "none") return word
    if (key ~ /^(trustedusercakeys|authorizedprincipalsfile|authorizedprincipalscommand|revokedkeys|controlpath|identityagent|identityfile|certificatefile|userknownhostsfile)$/) {
        if (word == "/dev/null") return word
        if (word ~ /^\/tmp\// || word ~ /^\/var\/tmp\//) return "/tmp/(left-out)"
        if (word ~ /^\/etc\/ssh\// && plain(word)) return word
        return "/(left-out)"
    }
    if (low ~ /^(yes|no|true|false|ask|accept-new|off|auto|autoask|prohibit-password|without-password|forced-commands-only|shosts-only|quiet|silent|fatal|error|info|verbose|debug|debug1|debug2|debug3|root|nobody)$/) return word
    if (length(word) <= 8 && low ~ /^[0-9][0-9smhdw]*$/) return word
    return "withheld"
}

# postconf(5): names of restrictions and levels, versions of TLS, times, networks. What a value is made of: words of a
# parameter that is asked for, restrictions of the owner, networks, a path, paths.
function mail_kind(key, value,   n, words, i) {
    if (key == "smtpd_tls_cert_file" || key == "smtpd_tls_key_file") return "path"
    if (key == "smtpd_tls_chain_files") return "paths"
    if (key == "mynetworks") return "networks"
    if (key == "smtpd_restriction_classes") return "names"
    if (key in POSTFIX) return "words"
    if (length(key) > 40 || key !~ /^[a-z0-9_]*$/) return ""
    n = split(value, words, /[ ,\t]+/)
    for (i = 1; i <= n; i++) if (words[i] != "") break
    if (i > n) return "words"
    if (is_restriction(words[i]) || words[i] in MAIL_CLASS || closed(words[i]) != "") return "restrictions"
    if (value ~ /^(yes|no|true|false|1|0)$/) return "words"
    return (is_network(words[i]) || words[i] == "left-out") ? "networks" : ""
}
function is_class(text) { return length(text) <= 40 && text ~ /^[a-z0-9_]+$/ }
# The names of restriction classes, of all lines that list some.
function mail_classes(n,   i, j, m, words, line, at, inside) {
    split("", MAIL_CLASS); inside = 0
    for (i = 1; i <= n; i++) {
        line = trim(text_of[i])
        if (line == "" || line ~ /^#/) continue
        if (text_of[i] !~ /^[ \t]/) {
            at = index(text_of[i] "=", "="); inside = trim(substr(text_of[i], 1, at - 1)) == "smtpd_restriction_classes"
            line = substr(text_of[i], at + 1)
        }
        if (!inside) continue
        m = split(line, words, /[ ,\t\r]+/)
        for (j = 1; j <= m; j++) if (is_class(words[j])) MAIL_CLASS[words[j]] = 1
    }
}
function is_restriction(text) {
    return length(text) <= 40 && text ~ /^[a-z_]+$/ && text ~ /^(permit|reject|defer|check_|warn_if_reject|sleep)/
}
function is_network(text,   at, address, bits) {
    sub(/^!+/, "", text); at = index(text, "/")
    if (!at) return 0
    address = substr(text, 1, at - 1); bits = substr(text, at + 1)
    return address ~ /[.:]/ && address ~ /^[][0-9A-Fa-f.:]*$/ && bits ~ /^[0-9]+$/ && length(bits) <= 3
}
function mail_words(value, what, between,   n, words, i, one, out, any) {
    if (what == "path") return value == "" || value ~ /^\$/ ? "" : kept_path(value)
    n = split(value, words, /[ ,\t\r]+/); out = ""; any = 0
    for (i = 1; i <= n; i++) {
        if (words[i] == "") continue
        if (what == "paths") { one = kept_path(words[i]) }
        else one = words[i] ~ /[${}]/ ? mail_macros(words[i], what) : mail_word(words[i], what)
        out = out (any ? between : "") one; any = 1
    }
    return out
}
# A word with its macros: what stands between the signs is judged by itself.
function mail_macros(text, what,   out, part) {
    out = ""
    while (text != "") {
        if (match(text, /^[^${}()?:]+/)) {
            part = substr(text, 1, RLENGTH); text = substr(text, RLENGTH + 1)
            if (out ~ /\$[{(]?$/ && length(part) <= 40 && part ~ /^[a-z0-9_]+$/) out = out part
            else out = out mail_word(part, what)
        } else { out = out substr(text, 1, 1); text = substr(text, 2) }
    }
    return out
}
# The first part of a value that begins in one of the lines below its name.
function next_part(at, n,   line) {
    for (; at <= n; at++) {
        line = trim(text_of[at])
        if (line != "" && line !~ /^#/) return text_of[at] ~ /^[ \t]/ ? line : ""
    }
    return ""
}
function mail_word(text, what,   name, kept) {
    if (text ~ /^[=!<>?:]+$/) return text
    if (what == "words" && tolower(text) ~ /^(yes|no|none|may|encrypt)$/) return tolower(text)
    if (what == "networks") return mail_network(text)
    name = closed(text)
    if (name != "") return name
    if (what == "restrictions") return (is_restriction(text) || text in MAIL_CLASS) ? text : "left-out"
    if (what == "names") return is_class(text) ? text : "left-out"
    name = text; sub(/^!+/, "", name); kept = name; sub(/^(>=)+/, "", kept)
    if (length(name) > 40 || !plain(kept)) return "left-out"
    if (name ~ /^[a-z_]+$/ || name ~ /^(TLSv1|SSLv|>=)/ || name == "127.0.0.1" || name == "loopback-only") return text
    return (length(name) <= 8 && name ~ /^[0-9][A-Za-z0-9]*$/) ? text : "left-out"
}
function mail_network(text,   sign, body, bits) {
    sign = text ~ /^!/ ? "!" : ""; body = sign == "" ? text : substr(text, 2)
    if (body == "127.0.0.0/8" || body == "127.0.0.1/32" || body == "127.0.0.1" || body == "[::1]/128" || body == "[::ffff:127.0.0.0]/104") return text
    bits = body; sub(/^.*\//, "", bits)
    if (is_network(body) && bits + 0 <= (index(body, ":") ? 3 : 7)) return text
    if (index(body, ":/") || body ~ /^\//) return sign "/table"
    return sign "left-out"
}
function master(line,   indent, n, words, i, kept, option, at, name) {
    if (line ~ /^[ \t]*#/) return ""
    indent = line; sub(/[^ \t].*$/, "", indent)
    n = split(line, words, " "); kept = ""; i = 1
    if (line !~ /^[ \t]/) {
        if (n < 8) return ""
        for (; i <= 8; i++) kept = kept (i > 1 ? " " : "") ((length(words[i]) <= 64 && words[i] ~ "^[][a-z0-9_.:/?-]+$") ? words[i] : "left-out")
    }
    for (; i <= n; i++) {
        if (words[i] !~ /^-o/) continue
        option = words[i] == "-o" ? words[++i] : substr(words[i], 3)
        while (option ~ /^\{/ && option !~ /\}$/ && i < n) option = option " " words[++i]
        if (option ~ /^\{.*\}$/) option = substr(option, 2, length(option) - 2)
        at = index(option, "=")
        if (!at) continue
        name = trim(substr(option, 1, at - 1)); option = trim(substr(option, at + 1))
        if (name in POSTFIX) kept = kept (kept == "" ? "" : " ") "-o " name "=" mail_words(option, mail_kind(name, option), ",")
    }
    return kept == "" ? "" : indent kept
}

# nginx: words and blocks; what belongs to a statement is written where it begins.
function nginx(n,   at, i, line, c, before, q, esc, variable) {
    words_n = 0; word = ""; in_word = 0; depth = 0; skip = 0; bad = 0; q = ""; esc = 0; variable = 0
    for (at = 1; at <= n && !bad; at++) {
        line = text_of[at]; before = ""
        for (i = 1; i <= length(line); i++) {
            c = substr(line, i, 1)
            if (esc) { word = word c; esc = 0 }
            else if (q != "") { word = word c; if (c == "\\") esc = 1; else if (c == q) q = "" }
            else if (c == " " || c == "\t" || c == "\r") end_word()
            else if (c == "#" && !in_word) break
            else {
                if (!in_word && !words_n) {
                    if (c !~ /[;{}]/) begun = at
                    # What stands first in its line keeps its column.
                    if (out[at] == "" && c != ";") { indent = substr(line, 1, i - 1); if (indent !~ /^[ \t]*$/) indent = "" }
                }
                if (c == ";") { end_word(); if (!words_n) bad = 1; directive() }
                else if (c == "{" && before == "$") { variable = 1; word = word c }
                else if (c == "}" && variable) { variable = 0; word = word c }
                else if (c == "{") { end_word(); open_block() }
                else if (c == "}") { end_word(); if (words_n || !depth) bad = 1; close_block(at) }
                else {
                    if (!in_word && (c == "\"" || c == "\047")) q = c
                    if (c == "\\") esc = 1
                    in_word = 1; word = word c
                }
            }
            before = c
        }
        if (q != "" || esc) { word = word " "; esc = 0 } else end_word()
    }
    if (bad || depth || words_n || q != "") for (at = 1; at <= n; at++) out[at] = ""
}
function end_word() { if (in_word) { said_words[++words_n] = word; word = ""; in_word = 0 } }
function put(at, text) { out[at] = (out[at] == "" ? indent : out[at] " ") text }
function rest_of(   i, text) { text = ""; for (i = 2; i <= words_n; i++) text = text (i > 2 ? " " : "") said_words[i]; return text }
function directive(   name, value) {
    name = bare(said_words[1])
    if (words_n && !skip) {
        value = nginx_value(name, rest_of())
        if (value != "") put(begun, name " " value ";")
    }
    words_n = 0
}
function open_block(   name) {
    name = words_n ? bare(said_words[1]) : ""
    depth++
    if (skip || name !~ /^(http|events|server|location|stream|mail)$/) skip++
    else put(begun, name " {")
    words_n = 0
}
function close_block(at) { if (skip) skip--; else put(at, "}"); depth-- }
# Whether a header takes pins back: an age of zero.
function pins_end(value,   n, parts, i) {
    n = split(tolower(value), parts, /[; "\047]+/)
    for (i = 1; i <= n; i++) if (parts[i] ~ /^max-age=0+$/) return 1
    return 0
}
function nginx_value(name, value,   n, words, i, one, kept) {
    n = split(value, words, " "); one = n ? bare(words[1]) : ""; kept = ""
    if (name == "include") return pattern(value) ? value : ""
    if (name ~ /^(worker_processes|sendfile|worker_connections|gzip_comp_level)$/) return (length(one) <= 8 && one ~ /^[A-Za-z0-9]+$/ && n == 1) ? one : "withheld"
    if (name == "ssl" || name == "autoindex") return value ~ /^(on|off)$/ ? value : ""
    if (name == "ssl_certificate" || name == "ssl_certificate_key") { kept = one; sub(/^\/+/, "", kept); return n == 1 && file_name("/" kept) ? one : "(withheld)" }
    if (name == "ssl_protocols") {
        for (i = 1; i <= n; i++) if (bare(words[i]) ~ /^(SSLv2|SSLv3|TLSv1|TLSv1\.1|TLSv1\.2|TLSv1\.3)$/) kept = kept (kept == "" ? "" : " ") bare(words[i])
        return kept
    }
    if (name == "ssl_ciphers") {
        n = split(one, words, ":")
        for (i = 1; i <= n; i++) {
            one = words[i]; sub(/^[!+-]+/, "", one)
            if (one != "" && length(one) <= 64 && (one in CIPHER || one ~ /^[A-Z0-9_+@=-]+$/)) kept = kept (kept == "" ? "" : ":") words[i]
        }
        return kept
    }
    if (name == "add_header") {
        n = split("Public-Key-Pins Public-Key-Pins-Report-Only Strict-Transport-Security Expect-CT", words, " ")
        kept = pins_end(value) ? " max-age=0" : " withheld"
        for (i = 1; i <= n; i++) if (tolower(words[i]) == tolower(one)) return words[i] kept
    }
    return ""
}

# proc_pid_mountinfo(5).
function mount_options(text,   n, parts, i, out) {
    n = split(text, parts, ","); out = ""
    for (i = 1; i <= n; i++) out = out (i > 1 ? "," : "") mount_option(parts[i])
    return out
}
function mount_option(text,   at, name, value) {
    at = index(text, "=")
    if (!at) return (text == "" || text in MOUNT_FLAG) ? text : "(option withheld)"
    name = substr(text, 1, at - 1); value = substr(text, at + 1)
    if (name in MOUNT_VALUE && plain(value)) return text
    if (name ~ /^(lowerdir|upperdir|workdir|subvol|logdev|rtdev|device)$/ && (is_path(value) || plain(value))) return text
    if (name == "name" && value ~ /^(systemd|elogind|unified)$/) return text
    return (name ~ /^[a-z_-]+$/ && length(name) <= 24) ? name "=(value withheld)" : "(option withheld)"
}
function mount_source(kind, source,   at, path) {
    if (source == "") return ""
    if (kind ~ /^(nfs|nfs4|fuse\.sshfs|ceph|fuse\.glusterfs)$/) {
        path = source
        if (!match(path, /:\/[^:]*$/)) return "(left out)"
        path = substr(path, RSTART + 1)
        return is_path(path) ? "(left out):" path : "(left out)"
    }
    if (kind == "cifs" || kind == "smb3") {
        path = source; sub(/^\/+/, "", path); at = index(path, "/")
        return (at && is_path(substr(path, at))) ? "//(left out)" substr(path, at) : "(left out)"
    }
    if (kind == "zfs" && (source ~ /^\// || source !~ /[:@?=]/)) return source
    if (is_path(source) && !index(source, "@")) return source
    if ((kind == "9p" || kind == "virtiofs") && plain(source) && source !~ "[:/%]") return source
    if (source in MOUNT_NAME || kind == source || kind == "fuse." source) return source
    return "(left out)"
}
function escaped(text) { gsub(" ", "\\040", text); return text }
function mounts(line,   at, n, head, m, tail, i, out) {
    if (line == "") return ""
    at = index(line, " - ")
    if (!at) return "(line withheld)"
    n = split(substr(line, 1, at - 1), head, " "); m = split(substr(line, at + 3), tail, " ")
    if (n < 6 || m != 3 || !plain(head[1]) || !plain(head[2]) || !plain(head[3]) || !plain(tail[1])) return "(line withheld)"
    out = head[1] " " head[2] " " head[3] " " head[4] " " head[5] " " escaped(mount_options(head[6]))
    for (i = 7; i <= n; i++) { if (!plain(head[i])) return "(line withheld)"; out = out " " head[i] }
    return out " - " tail[1] " " escaped(mount_source(tail[1], tail[2])) " " escaped(mount_options(tail[3]))
}

# fstab(5): which device a line means is left out where its number names it.
function fstab(line,   n, w, at, source) {
    line = trim(line)
    if (line == "" || line ~ /^#/) return ""
    n = split(line, w, " ")
    if (n < 3 || !plain(w[3])) return ""
    at = index(w[1], "=")
    if (at && substr(w[1], 1, at - 1) ~ /^(UUID|LABEL|PARTUUID|PARTLABEL|ID)$/) source = substr(w[1], 1, at) "left-out"
    else source = escaped(mount_source(w[3], w[1]))
    return source " " w[2] " " w[3] " " escaped(mount_options(n > 3 ? w[4] : "defaults"))
}

# The command line of the kernel (kernel-parameters.txt): quotation marks hold blanks together.
function cmdline(line,   i, c, in_quotes, word, out) {
    out = ""; word = ""; in_quotes = 0; line = line " "
    for (i = 1; i <= length(line); i++) {
        c = substr(line, i, 1)
        if (c == "\"") in_quotes = !in_quotes
        if (c ~ /[ \t]/ && (!in_quotes || i == length(line))) {
            if (word == "--") return out (out == "" ? "" : " ") "-- (left out)"
            if (word != "") out = out (out == "" ? "" : " ") parameter(word)
            word = ""
        } else word = word c
    }
    return out
}
function parameter(word,   at, name, value, figures) {
    at = index(word, "=")
    if (!at) return word in CMD_PLAIN ? word : "(word withheld)"
    name = substr(word, 1, at - 1); value = substr(word, at + 1)
    if (name == "rootflags") { value = mount_options(value); gsub(" ", "-", value); return name "=" value }
    if (harmless(name, value)) return word
    figures = name; gsub(/[^0-9]/, "", figures)
    if (name !~ /^[a-z][a-z0-9_.-]*$/ || length(name) > 40 || length(figures) > 3) name = "(name withheld)"
    return name "=(value withheld)"
}
function harmless(name, value,   at, one) {
    if (name ~ /^(root|resume|boot|usr)$/) {
        one = value
        if (sub(/^(UUID|PARTUUID|LABEL|PARTLABEL|ZFS)=/, "", one)) return plain(one)
        return value == "zfs:AUTO" || (value ~ /^\/dev\// && place(value))
    }
    if (name ~ /^(BOOT_IMAGE|init|initrd|rdinit|rd\.lvm\.lv|rd\.lvm\.vg)$/) return place(value)
    if (name in CMD_PLAIN) return plain(value)
    at = index(name, ".")
    return at && module_value(substr(name, 1, at - 1), substr(name, at + 1), value)
}
function place(value) { return value != "" && length(value) <= 200 && value ~ "^[A-Za-z0-9_.,+/~()\\\\-]+$" && !index(value, "//") }

# The command line of QEMU, a word in a line: what describes the machine and its disks. Written is one line
# with a byte 0 between the words ("\002" until the archive is packed), as the kernel has it.
function qemu(n,   i, word, argument, kept, zero) {
    zero = sprintf("%c", 2); kept = text_of[1]; i = 2
    sub(/^.*\//, "", kept)
    if (kept != "qemu-system-x86_64" && kept != "kvm" && kept != "qemu-kvm") kept = "qemu"
    while (i <= n) {
        word = text_of[i++]
        if (word !~ /^-./) { kept = kept zero "-hda" zero qemu_file(word); continue }
        sub(/^--?/, "", word)
        argument = ""
        if (!(word in QEMU_ALONE)) argument = text_of[i++]
        if (word == "enable-kvm" || word == "snapshot") kept = kept zero "-" word
        else if (word == "id" || word == "cpu") kept = kept zero "-" word zero qemu_value(argument, 1)
        else if (word ~ /^hd[abcd]$/) kept = kept zero "-" word zero qemu_file(argument)
        else if (word == "object") {
            # Objects may be secrets; those that limit a disk are none.
            argument = qemu_object(argument, QEMU_OPTION[word])
            if (argument ~ /(^|,)qom-type=throttle-group(,|$)/) kept = kept zero "-" word zero argument
        }
        else if (word in QEMU_OPTION) kept = kept zero "-" word zero qemu_object(argument, QEMU_OPTION[word])
    }
    # The line has an end, which belongs to a word that means nothing.
    out[1] = kept zero "-end"
    for (i = 2; i <= n; i++) out[i] = ""
}
function qemu_value(text, commas,   one) {
    one = text; gsub(/[=#]/, "-", one)
    return (text == "" || (plain(one) && (commas || !index(text, ",")))) ? text : "(value withheld)"
}
function qemu_file(name,   end) {
    end = match(name, "[/:]")
    if (end && substr(name, end, 1) == ":") {
        end = substr(name, 1, end - 1)
        if (end != "file") return (plain(end) ? end ":" : "") "(left out)"
    }
    if (name !~ "^[A-Za-z0-9_./+:@%~ -]*$" || index(name, "//") || index(name, "/") == 0) return "(left out)"
    if (name ~ /^\/dev\// && name !~ /^\/dev\/disk\//) return name
    sub("/[^/]*$", "", name)
    return name "/(left out)"
}
function qemu_object(text, implied,   i, n, parts, at, key, value, last, kept, drive) {
    pairs = 0
    if (text ~ /^\{/) {
        json_text = text; json_at = 1
        if (!json_value("")) return ""
    } else {
        # A comma that is written twice belongs to a value, which is not plain then.
        if (index(text, ",,")) return ""
        n = split(text, parts, ",")
        for (i = 1; i <= n; i++) {
            at = index(parts[i], "=")
            if (at) pair(substr(parts[i], 1, at - 1), substr(parts[i], at + 1))
            else if (i == 1 && implied != "") pair(implied, parts[i])
            else if (parts[i] != "") pair(parts[i], "on")
        }
    }
    drive = 1; kept = ""
    for (i = 1; i <= pairs; i++) if (pair_key[i] == "node-name") drive = 0
    for (i = 1; i <= pairs; i++) {
        key = pair_key[i]; value = pair_value[i]; last = key; sub(/^.*\./, "", last)
        if (!plain(key) || index(key, ",")) continue
        if (last == "guest") value = "(left out)"
        else if (last == "filename" || (last == "file" && drive)) value = qemu_file(value)
        else if (key ~ /^(throttling\.|limits\.|x-bps|x-iops|bps|iops)/ || last in QEMU_KEY) value = qemu_value(value, 0)
        else continue
        kept = kept (kept == "" ? "" : ",") key "=" value
    }
    return kept
}
function pair(key, value) { pairs++; pair_key[pairs] = key; pair_value[pairs] = value }
function json_blank() { while (substr(json_text, json_at, 1) ~ /^[ \t]$/) json_at++ }
function json_string(   c, found) {
    found = ""; json_at++
    while (json_at <= length(json_text)) {
        c = substr(json_text, json_at++, 1)
        if (c == "\"") return found
        # What needs a backslash is no plain value: it stays visible as none.
        if (c == "\\") { json_at++; c = "?" }
        found = found c
    }
    json_bad = 1
    return ""
}
function json_value(prefix,   c, name, at, first) {
    json_bad = 0
    json_blank(); c = substr(json_text, json_at, 1)
    if (c == "{" || c == "[") {
        at = 0; first = 1; json_at++; json_blank()
        while (substr(json_text, json_at, 1) !~ /^[]}]$/) {
            if (json_at > length(json_text)) return 0
            if (!first) { if (substr(json_text, json_at, 1) != ",") return 0; json_at++; json_blank() }
            first = 0
            if (c == "{") {
                if (substr(json_text, json_at, 1) != "\"") return 0
                name = json_string(); if (json_bad) return 0
                json_blank(); if (substr(json_text, json_at++, 1) != ":") return 0
            } else name = at++
            if (!json_value(prefix == "" ? name : prefix "." name)) return 0
            json_blank()
        }
        json_at++
        return 1
    }
    if (c == "\"") { name = json_string(); if (json_bad) return 0; pair(prefix, name); return 1 }
    name = substr(json_text, json_at)
    if (!match(name, /^(true|false|null|-?[0-9][0-9.]*)/)) return 0
    name = substr(name, 1, RLENGTH); json_at += RLENGTH
    if (name == "true") pair(prefix, "on")
    else if (name == "false") pair(prefix, "off")
    else if (name != "null") pair(prefix, name)
    return 1
}

# ---- what commands print, by class --------------------------------------------------------------

# "\001" stands for a line that is left out.
function printed(class, line,   gone) {
    gone = "\001"
    if (class == "word") return plain(trim(line)) ? line : gone
    if (class == "digits") return line ~ /^[0-9]*$/ ? line : gone
    if (class == "counts") return (line ~ /^[0-9]+ [0-9]+$/ && length(line) <= 19 && index(line, " ") <= 10 && length(line) - index(line, " ") <= 9) ? line : gone
    if (class == "properties") return property(line)
    if (class == "named") return named(line)
    if (class == "status") return pool_status(line)
    if (class == "zdb") return zdb(line)
    if (class == "table") return dm_table(line)
    if (class == "luks") return luks(line)
    if (class == "report") return report(line)
    if (class == "ext4") return substr(line, 1, index(line ":", ":") - 1) in EXT4 ? line : gone
    if (class == "xfs") return (index(line, "=") && length(line) <= 300 && line ~ /^(meta-data=|data|naming|log|realtime| |=)/ && line ~ "^[A-Za-z0-9_.,+/%= -]*$") ? line : gone
    if (class == "btrfs") return (line ~ /^(compression|ro)=/ && (line ~ /=$/ || plain(substr(line, index(line, "=") + 1)))) ? line : gone
    if (class == "rpm") return (index(line, " ") <= 81 && length(line) - index(line, " ") <= 80 && line ~ /^[A-Za-z0-9._+-]+ [A-Za-z0-9.+~^:_-]+$/) ? line : gone
    if (class == "queue") return queue(line)
    if (class == "smart") return smart(line)
    return gone
}
# What a disk says of its health, in words of our own.
function digits(text) { return length(text) <= 18 && text ~ /^[0-9]+$/ }
function smart(line,   n, w, name, value, gone, left) {
    gone = "\001"
    n = split(line, w, " ")
    if (n == 2 && w[1] == "health" && w[2] ~ /^(passed|failed|hot)$/) return w[1] " " w[2]
    if (n == 1 && w[1] ~ /^(sleeps|closed)$/) return w[1]
    if (n == 3 && w[1] == "counter") return (w[2] ~ /^(reallocated_sectors|uncorrectable_errors|pending_sectors|offline_uncorrectable_sectors|critical_warning|available_spare|available_spare_threshold|percentage_used|media_errors|grown_defects|uncorrected_errors|life_left)$/ && digits(w[3])) ? w[1] " " w[2] " " w[3] : gone
    if (n == 3 && w[1] == "failed" && w[3] ~ /^(prefail|old|past)$/) return is_attribute(w[2]) ? w[1] " " w[2] " " w[3] : gone
    line = trim(line)
    if (line ~ /^SMART overall-health self-assessment test result: (PASSED|FAILED!)$/) return line ~ /PASSED$/ ? "health passed" : "health failed"
    if (line == "SMART Health Status: OK") return "health passed"
    if (index(line, "SMART Health Status: ") == 1) return index(line, "TEMPERATURE") ? "health hot" : "health failed"
    if (index(line, "Device is in ") == 1 && index(line, " mode")) return "sleeps"
    if (index(line, "Smartctl open device: ") == 1 && line ~ /Permission denied$/) return "closed"
    name = ""
    if (index(line, "Critical Warning:") == 1) { name = "critical_warning"; value = substr(line, 18) }
    else if (index(line, "Available Spare:") == 1) { name = "available_spare"; value = substr(line, 17) }
    else if (index(line, "Available Spare Threshold:") == 1) { name = "available_spare_threshold"; value = substr(line, 27) }
    else if (index(line, "Percentage Used:") == 1) { name = "percentage_used"; value = substr(line, 17) }
    else if (index(line, "Media and Data Integrity Errors:") == 1) { name = "media_errors"; value = substr(line, 33) }
    else if (index(line, "Elements in grown defect list:") == 1) { name = "grown_defects"; value = substr(line, 31) }
    else if (index(line, "Percentage used endurance indicator:") == 1) { name = "percentage_used"; value = substr(line, 37) }
    if (name != "") {
        value = trim(value)
        if (value ~ /^0x/) {
            if (value !~ /^0x[0-9a-fA-F][0-9a-fA-F]$/) return gone
            value = tolower(value)
            return "counter " name " " ((index("0123456789abcdef", substr(value, 3, 1)) - 1) * 16 + index("0123456789abcdef", substr(value, 4, 1)) - 1)
        }
        sub(/%+$/, "", value); gsub(/,/, "", value)
        if (digits(value)) return "counter " name " " value
    }
    if (n == 8 && w[1] ~ /^(read|write|verify):$/) return digits(w[8]) ? "counter uncorrected_errors " w[8] : gone
    if (n < 10 || w[3] !~ /^0x/ || w[1] !~ /^[0-9]+$/ || length(w[1]) > 9) return gone
    # ID# ATTRIBUTE_NAME FLAG VALUE WORST THRESH TYPE UPDATED WHEN_FAILED RAW_VALUE; what is kept may take several lines.
    name = (w[1] + 0) " " w[2]; value = ""
    if ((name in SMART_COUNTER) && digits(w[10]) && w[10] + 0 <= 4294967295) value = "counter " SMART_COUNTER[name] " " w[10]
    # Of busybox a number that begins with 0 is octal.
    left = w[4]; sub(/^0+/, "", left)
    if ((name in SMART_WEAR) && w[4] ~ /^[0-9]+$/ && length(w[4]) <= 9 && left + 0 <= 100 && (left != "" || w[9] == "FAILING_NOW")) \
        value = value (value == "" ? "" : "\nO") "counter life_left " (left == "" ? 0 : left)
    if (w[9] ~ /^(FAILING_NOW|In_the_past)$/ && is_attribute(w[2]) && !index(w[2], "Temp")) \
        value = value (value == "" ? "" : "\nO") "failed " w[2] " " (w[9] == "In_the_past" ? "past" : w[7] == "Pre-fail" ? "prefail" : "old")
    return value == "" ? gone : value
}
function is_attribute(text) { return text != "" && length(text) <= 32 && text ~ "^[A-Za-z0-9_%/().-]*$" }
# Of a message in the queue when it came and why it waits; no address, no name.
function queue(line,   n, w, i, since, kind, at, text, why, code, one, out, known) {
    if (line == "") return line
    n = split(line, w, " ")
    if (line ~ /^waits [0-9]+ [a-z-]+ [0-9.-]+$/) {
        known = w[3] == "other" || w[3] == "held"
        for (i = 1; i in REASON; i++) if (REASON[i] == w[3]) known = 1
        return known && length(w[2]) <= 12 && length(w[4]) <= 9 && w[4] !~ /[0-9]-|-[0-9.]|--/ ? line : "\001"
    }
    json_text = line; json_at = 1; pairs = 0
    if (!json_value("")) return "\001"
    since = kind = ""
    for (i = 1; i <= pairs; i++) {
        if (pair_key[i] == "arrival_time" && pair_value[i] ~ /^[0-9]+$/) since = pair_value[i]
        if (pair_key[i] == "queue_name") kind = pair_value[i]
    }
    if (since == "" || length(since) > 12 || (kind != "deferred" && kind != "hold")) return "\001"
    out = ""
    for (i = 1; i <= pairs; i++) {
        if (pair_key[i] ~ /^recipients\.[0-9]+\./ && pair_key[i] ~ (kind == "hold" ? "address$" : "delay_reason$")) {
            one = "waits " since " " (kind == "hold" ? "held -" : reason(pair_value[i]))
            if (index(out "\nO", one "\nO") != 1 && !index(out "\nO", "\nO" one "\nO")) out = out (out == "" ? "" : "\nO") one
        }
    }
    return out == "" ? "\001" : out
}
function reason(text,   i, found, at, words, n, code) {
    text = tolower(text); found = "other"
    for (i = 1; i in REASON; i++) if (index(text, NEEDLE[i])) { found = REASON[i]; break }
    at = index(text, " said: "); n = 7
    if (!at) { at = index(text, " refused to talk to me: "); n = 24 }
    if (!at) return found " -"
    n = split(substr(text, at + n), words, /[ -]/)
    if (words[1] !~ /^[0-9][0-9][0-9]$/) return found " -"
    code = words[1]
    if (n > 1 && words[2] ~ /^[0-9]\.[0-9]\.[0-9]$/) code = code "." words[2]
    return found " " code
}
function is_common(value,   one) {
    if (value ~ /^(yes|no|enabled|disabled|active|default|local|standard|all|latency)$/) return 1
    one = value; sub(/[KMGTPExB%]+$/, "", one)
    return length(one) <= 20 && one ~ /^[0-9][0-9.]*$/
}
function property(line,   n, f, name, value, secret, place_ok, source) {
    if (line == "") return line
    n = split(line, f, "\t")
    if (n < 2) return "\001"
    name = f[1]; value = f[2]; source = n > 2 ? "\t" f[3] : ""
    if (n > 2 && (value == "path" || value == "ashift")) return of_device(name, f[3]) ? line : "\001"
    one = name; sub("@", "_", one)
    if (index(name, ":") || name ~ /[A-Z]/ || !plain(one) || name in ZFS_IDENTITY) return "\001"
    secret = names_a_secret(name) && name != "keyformat" && name != "keystatus"
    place_ok = name ~ /^(mountpoint|origin|altroot|bootfs|cachefile|clones|encryptionroot)$/ && (is_path(value) || value !~ /[:@?=]/)
    if (value ~ /^(-|none|off|on|prompt)?$/ || (!secret && (is_common(value) || (name in ZFS_WORD && plain(value)) || place_ok))) return name "\t" value source
    return name "\t(value withheld)" source
}
function of_device(name, value) {
    sub(/[ \t]+$/, "", value); sub(/^\/dev\//, "", value)
    if (name ~ /^(mirror-|raidz|draid)/ && plain(name)) return plain(value)
    return plain(name) && plain(value) && name !~ "[/-]" && value !~ "[/-]"
}
function named(line,   at, rest) {
    if (line == "") return line
    at = index(line, "\t")
    if (!at) return "\001"
    rest = property(substr(line, at + 1))
    return rest == "\001" ? rest : substr(line, 1, at) rest
}
function pool_status(line,   text, w) {
    text = line; sub(/^[ \t]+/, "", text)
    if (line != "" && line !~ /^\t/ && text !~ /^(pool:|state:|scan:|config:|errors: No known data errors|errors: List of errors unavailable|errors: Permanent errors have been detected)/) {
        if (text !~ /^errors: [0-9.]+[KMGTPE]? data errors/) return "\001"
        split(text, w, " ")
        return "errors: " w[2] " data errors"
    }
    # A disk that is missing is named by its serial number.
    gsub("/dev/disk/[^ \t]*", "/dev/disk/left-out", line)
    return suspicious(line) ? "\001" : line
}
function zdb(line,   text, at, key, value) {
    text = trim(line); at = index(text, ":")
    if (!at) return "\001"
    key = substr(text, 1, at - 1); value = trim(substr(text, at + 1)); gsub(/^\047+|\047+$/, "", value)
    # In the cache file the lines of a pool follow its name.
    if (line ~ /^[^ \t]/ && value == "" && plain(key)) return line
    if (key ~ /^(vdev_tree|type|id|nparity|ashift|asize|is_log)$/ && (value == "" || plain(value))) return line
    if (key ~ /^children\[/ && value == "") return line
    return (key == "path" && value ~ "^/dev/[^/]*$") ? line : "\001"
}
function dm_table(line,   at, n, w, out, key, i) {
    if (line == "") return line
    at = index(line, ": ")
    if (!at) return "\001"
    n = split(substr(line, at + 2), w, " ")
    if (n < 3 || !plain(w[1]) || !plain(w[2]) || !(w[3] in DM_TARGET)) return "\001"
    out = substr(line, 1, at - 1) ": " w[1] " " w[2] " " w[3]
    if (w[3] != "crypt" || n < 8) return out
    # Of the key only its length.
    if (w[5] ~ /^:/) { split(substr(w[5], 2), key, ":"); gsub(/[^0-9]/, "", key[1]); w[5] = ":" key[1] ":(left-out)" }
    else if (w[5] != "-") gsub(/./, "0", w[5])
    out = out " " word_or_dash(w[4]) " " substr(w[5], 1, 1024) " " word_or_dash(w[6]) " " word_or_dash(w[7]) " " word_or_dash(w[8])
    for (i = 9; i <= n; i++) if (plain(w[i])) out = out " " w[i]
    return out
}
function word_or_dash(text) { return plain(text) ? text : "-" }
function luks(line,   text, at, value) {
    text = trim(line); at = index(text, ":"); value = at ? trim(substr(text, at + 1)) : ""
    if (text ~ /^(Version|PBKDF):/ && plain(value)) return line
    return (text ~ /^Key Slot/ && at && value ~ /^(ENABLED|DISABLED)?$/) ? line : "\001"
}
# A report of LVM: fields that were asked for.
function report(line,   text, name) {
    if (line !~ "^[][ \t{}\":,A-Za-z0-9_.()/+-]*$") return "\001"
    text = line
    while (match(text, /"[^"]*"[ \t]*:/)) {
        name = substr(text, RSTART + 1, RLENGTH); name = substr(name, 1, index(name, "\"") - 1)
        if (!(name in LVM)) return "\001"
        text = substr(text, RSTART + RLENGTH)
    }
    return line
}
# Whether a line could hold a secret: what tools complain about is free text.
function suspicious(line) {
    return line ~ /:\/\/|@|-----|[=]/ || names_a_secret(line)
}

# ---- requests -----------------------------------------------------------------------------------

function flush_file(path, n,   i, blank, some) {
    if (class_now == "maps") { blank = 1; for (i = 1; i <= n; i++) if (out[i] != "") blank = 0; if (blank) return }
    emit("F " path)
    # Many lines at once, but not all: awk joins long texts slowly.
    some = ""
    for (i = 1; i <= n; i++) {
        some = i % 32 == 1 ? "=" out[i] : some "\n=" out[i]
        if (i % 32 == 0 || i == n) emit(some)
    }
}
# What is printed while texts are to follow later waits for them.
function emit(line) {
    if (!slots) { print line; return }
    if (!slot) { waiting[++waits] = line; return }
    batch_size += length(line) + 1
    if (batch_size <= 33554432) slot_line[++slot_lines] = line
}
# The text of a file is whole.
function take_text() {
    if (text_path in taken) return
    taken[text_path] = 1
    if (size > 33554432) emit("X " text_path "\t\tlonger than 32 MiB")
    else finish(text_class, text_path, lines)
}
# The name of the next file, above its text. Each stands there once, so that a file that has the name of another one
# in its text gives it away.
function next_text(path,   i) {
    if (slot) end_slot()
    if (is_last) forged = 1
    if (path == "/dev/null") { slot = 0; is_last = 1; return }
    for (i = slot_seen + 1; i <= slots && slot_path[i] != path; i++) ;
    if (i > slots) { forged = 1; slot = slot_seen; return }
    slot = slot_seen = i; slot_from[i] = slot_lines + 1
    text_class = slot_class[i]; text_path = path; lines = size = 0
}
function end_slot() {
    # head writes a line of its own above the name.
    end_last_line()
    take_text()
    slot_to[slot] = slot_lines
}
# What ends the last line may be a line of its own.
function end_last_line() {
    if (lines && text_of[lines] == "") { lines--; size-- }
}
function end_batch(given_up,   i, j, k, lost) {
    lost = forged || batch_size > 33554432; slots = slot = 0
    for (i = 1; i <= waits; i++) {
        if (!(i in slot_at)) { print waiting[i]; continue }
        j = slot_at[i]
        if (given_up) delete taken[slot_path[j]]
        else if (lost) print "X " slot_path[j] "\t\t" (forged ? "not clear what is in it: a file holds the name of another" : "longer than 32 MiB together with others")
        else if (slot_path[j] in not_whole) { print "Y" slot_path[j] "\t" not_whole[slot_path[j]]; delete taken[slot_path[j]] }
        else if (!(j in slot_from)) print "Y" slot_path[j] "\tcannot be read"
        else for (k = slot_from[j]; k <= slot_to[j]; k++) print slot_line[k]
    }
    split("", waiting); split("", slot_at); split("", slot_line); split("", not_whole)
    split("", slot_from); split("", slot_to)
    waits = slot_lines = batch_size = forged = is_last = slot_seen = 0
}
# All of a text is there, in text_of.
function finish(class, path, n,   i, what, line, at, key, value, said, start) {
    class_now = class; asked = 0; depth = 0; bad = 0; carried = ""
    for (i = 1; i <= n; i++) out[i] = ""
    if (class == "nginx") nginx(n)
    else if (class == "samba") samba_file(n)
    else if (class == "postfix") {
        what = ""
        mail_classes(n)
        for (i = 1; i <= n; i++) {
            line = trim(text_of[i])
            if (line == "" || line ~ /^#/) continue
            if (text_of[i] ~ /^[ \t]/) {
                if (what != "") line = mail_words(line, what, " ")
                out[i] = what == "" || line == "" ? "" : " " line
                continue
            }
            at = index(text_of[i], "="); what = ""
            if (!at) continue
            key = trim(substr(text_of[i], 1, at - 1)); value = trim(substr(text_of[i], at + 1))
            what = key == "" ? "" : mail_kind(key, value == "" ? next_part(i + 1, n) : value)
            if (what != "") { out[i] = key " = " mail_words(value, what, " "); sub(/ $/, "", out[i]) }
        }
    }
    else if (class == "apache") {
        said = ""; start = 0
        for (i = 1; i <= n; i++) {
            line = text_of[i]
            if (!start) { start = i; said = "" }
            if (line ~ /\\$/ && i < n) { said = said substr(line, 1, length(line) - 1); continue }
            sub(/\\$/, "", line)
            out[start] = apache(said line); start = 0
        }
    }
    # The kernel has one line; more of them are no command line.
    else if (class == "qemu") { qemu(n); n = 1 }
    else if (class == "cmdline") { if (n == 1) out[1] = cmdline(text_of[1]) }
    else for (i = 1; i <= n; i++) out[i] = line_of(class, text_of[i])
    if (bad) for (i = 1; i <= n; i++) out[i] = ""
    flush_file(path, n)
}
# Of a complaint its kind, and the line of a file that everybody has: tools quote what they read.
function complaint(line,   small, i) {
    line = substr(line, 1, 4096); small = tolower(line)
    for (i = 1; i in KIND; i++) if (index(small, KIND_WORD[i])) return KIND[i] place_in(line)
    return ""
}
function place_in(line,   i, at, rest, name) {
    for (i = 1; i in KNOWN_FILE; i++) {
        name = KNOWN_FILE[i]; at = index(line, name)
        if (!at) continue
        rest = substr(line, at + length(name))
        if (rest ~ "^[A-Za-z0-9_./-]") continue
        if (sub(/^([:,]? line |:)/, "", rest) && match(rest, /^[0-9]+/) && RLENGTH <= 6) \
            return " in " name " line " substr(rest, 1, RLENGTH)
        return " in " name
    }
    return ""
}
function complaints(n,   i, any, one, said) {
    any = 0; said = "\n"
    for (i = 1; i <= n && any < 100; i++) {
        if (got_err[i] !~ /[^ \t\r]/) continue
        any++; one = complaint(got_err[i])
        if (one == "" || index(said, "\n" one "\n")) continue
        said = said one "\n"; emit("E" one)
    }
    if (any && said == "\n") emit("E" OTHER_KIND)
}
# A line of a text.
function take_line(line) {
    size += length(line) + 1
    # Of the libraries of a process only those that are gone are kept.
    if (size > 33554432 || (text_class == "maps" && line !~ /\(deleted\)$/)) return
    text_of[++lines] = line
}
# The first line of an answer: of its words those that versions have.
function version(line,   n, words, i, word, out) {
    n = split(line, words, " "); out = ""
    for (i = 1; i <= n && i <= 20; i++) {
        word = words[i]
        if (word ~ /^\//) sub(/^.*\//, "", word)
        if (of_version(word)) out = out (out == "" ? "" : " ") word
    }
    return out
}
function of_version(word,   core, figure, rest, behind) {
    core = word; gsub(/^[(),;:]+/, "", core); gsub(/[(),;:]+$/, "", core)
    if (core in VERSION_WORD) return 1
    if (core == "" || length(core) > 40) return 0
    if (word == "(" core ")" && length(core) >= 6 && length(core) <= 12 && core ~ /^[0-9a-f]+$/) return 1
    figure = core; behind = 0
    if (match(core, "[/_-]") && substr(core, 1, RSTART - 1) in VERSION_WORD) { figure = substr(core, RSTART + 1); behind = 1 }
    sub(/^v/, "", figure)
    if (figure !~ /^[A-Za-z0-9.+:~-]+$/ || !match(figure, /^[0-9]+/) || RLENGTH > 4) return 0
    rest = substr(figure, RLENGTH + 1)
    return rest == "" || (rest ~ /^[.:+-]/ && (behind || length(rest) > 1))
}
function end_command(status,   i, n, kept, line) {
    emit("C")
    for (i = 1; i <= argc; i++) emit("A" argv[i])
    n = outs
    # The shell ends what was printed with a line of its own.
    if (n && got_out[n] == "") n--
    if (kind == "version") {
        for (i = 1; i <= n; i++) if (got_out[i] ~ /[^ \t]/) { emit("O" version(got_out[i])); break }
    } else for (i = 1; i <= n; i++) {
        line = printed(kind, got_out[i])
        if (line != "\001") emit("O" line)
    }
    if (kind == "version") {
        for (i = 1; i <= errs; i++) if (got_err[i] ~ /[^ \t]/) { emit("E" version(got_err[i])); break }
    } else complaints(errs)
    emit("Z" status)
}

BEGIN {
    list("pass pw pwd psk key keys keyid auth userpwd chap otp sig signature sas salt bearer login", SECRET)
@@TABLES@@
    for (name in CLOSED) { gsub(/[.]/, "[.]", name); ANY_CLOSED = ANY_CLOSED (ANY_CLOSED == "" ? "" : "|") name }
}
# Lines as they are, up to the mark.
is_raw {
    if ($0 == mark) {
        if (is_many) { if (slot) end_slot(); slot = is_many = 0 }
        else if (in_text) end_last_line()
        is_raw = 0
    }
    else if (is_many && substr($0, 1, 4) == "==> " && index($0, above) == 1 && substr($0, length($0) - 3) == " <==") \
        next_text(substr($0, length(above) + 1, length($0) - length(above) - 4))
    # The shell ends what a command printed with a line of its own.
    else if (!in_text) got_out[++outs] = $0
    else take_line($0)
    next
}
/^$/ { next }
{ tag = substr($0, 1, 1); rest = substr($0, 3) }
tag == "B" { at = index(rest, " "); text_class = substr(rest, 1, at - 1); text_path = substr(rest, at + 1); lines = size = 0; in_text = 1; next }
tag == "M" {
    at = index(rest, " ")
    slot_class[++slots] = substr(rest, 1, at - 1); slot_path[slots] = substr(rest, at + 1)
    slot_at[++waits] = slots
    next
}
tag == "H" { at = index($0, " "); above = "==> " substr($0, 2, at - 2); mark = substr($0, at + 1); is_many = is_raw = in_text = 1; slot = slot_seen = 0; next }
tag == "N" { at = index($0, "\t"); not_whole[substr($0, 2, at - 2)] = substr($0, at + 1); next }
tag == "V" || tag == "G" { in_text = 0; end_batch(tag == "G"); next }
tag == "C" { kind = rest; argc = outs = errs = 0; in_text = 0; next }
tag == "A" { argv[++argc] = substr($0, 2); next }
tag == "O" && in_text { take_line(substr($0, 2)); next }
tag == "R" { mark = substr($0, 2); is_raw = 1; next }
tag == "O" { got_out[++outs] = substr($0, 2); next }
tag == "E" { got_err[++errs] = substr($0, 2); next }
tag == "-" { in_text = 0; next }
# What the shell of the script itself complained about.
tag == "W" { line = complaint(substr($0, 2)); emit("W" (line == "" ? OTHER_KIND : line)); next }
tag == "." { in_text = 0; take_text(); next }
# The shell writes the exit status behind the output.
tag == "Z" { status = got_out[outs]; outs--; end_command(status ~ /^[0-9]+$/ ? status : 1); next }
{ emit($0) }
