//! A page that stands alone: no script, no request, light and dark.

const STYLE: &str = "\
:root{color-scheme:light dark;--fg:#1c2024;--dim:#5b6570;--bg:#fff;--line:#d8dde2;--card:#f6f8fa;\
--data:#2f6fb0;--copy:#86b3dd;--parity:#c98a2b;--metadata:#7a5ba8;--spare:#4f9d69;--special:#b4485e;\
--idle:#dfe3e7}\
@media(prefers-color-scheme:dark){:root{--fg:#e6e9ec;--dim:#9aa5b0;--bg:#14171a;--line:#333a41;\
--card:#1c2125;--data:#5c9ddb;--copy:#35618c;--parity:#d9a14a;--metadata:#a487d2;--spare:#68b984;\
--special:#d87088;--idle:#2b3137}}\
body{font:15px/1.5 system-ui,sans-serif;color:var(--fg);background:var(--bg);max-width:72rem;\
margin:2rem auto;padding:0 1.2rem}\
h1{font-size:1.5rem;margin:0 0 .2rem}h2{font-size:1.05rem;margin:0 0 .3rem}p{margin:.3rem 0}\
.dim{color:var(--dim)}.scroll{overflow-x:auto}\
table{border-collapse:collapse;width:100%;margin:1rem 0;font-variant-numeric:tabular-nums}\
th,td{padding:.3rem .6rem;border-bottom:1px solid var(--line);text-align:right;white-space:nowrap}\
th:first-child,td:first-child{text-align:left}th{font-weight:600;color:var(--dim)}\
section{border:1px solid var(--line);background:var(--card);border-radius:6px;padding:1rem;\
margin:1rem 0}\
svg{display:block;width:100%;height:auto;margin:.6rem 0}svg text{fill:var(--fg);font:12px system-ui,\
sans-serif}.warn{color:var(--special)}ul{margin:.3rem 0;padding-left:1.2rem}\
.key span{display:inline-block;margin-right:1rem}.key i{display:inline-block;width:.8rem;\
height:.8rem;border-radius:2px;margin-right:.35rem;vertical-align:-.1rem}";

/// A page around `body`, which is HTML already; `title` is text.
pub(super) fn shell(title: &str, body: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{0}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1>{0}</h1>\n{body}\
         </body>\n</html>\n",
        escape(title)
    )
}

/// Text as HTML. Control characters, and those that turn the direction of writing, become U+FFFD.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => out.push('\u{fffd}'),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
