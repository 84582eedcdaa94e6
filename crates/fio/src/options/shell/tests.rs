use super::*;
use std::collections::BTreeMap;

/// Returns the words of every command. `?` stands for [`UNKNOWN`].
fn run(text: &str) -> Vec<String> {
    let script = read(text, &BTreeMap::new()).unwrap();
    let words = script.commands.into_iter().map(|one| one.words.join("|"));
    words.map(|words| words.replace(UNKNOWN, "?")).collect()
}

#[test]
fn words_quotes_and_variables() {
    for (text, wanted) in [
        ("A=\"-x -y\"; c $A z", "c|-x|-y|z"),
        ("A=\"-x -y\"; c \"$A\" z", "c|-x -y|z"),
        ("A=1; c a$A\"b $A\"'$A'", "c|a1b 1$A"),
        (
            "O=(-a 'b c' $X); c \"${O[@]}\" \"${O[1]}\"",
            "c|-a|b c|?|b c",
        ),
        ("O=(-a); O+=(-b -c); c ${O[@]}", "c|-a|-b|-c"),
        (
            "A=1; A+=2; c ${A} ${B:-4k} \"${C-x y}\" ${A:+z}",
            "c|12|4k|x y|z",
        ),
        ("c $(echo a b) $((M)) $((2 * (3 + 4)))", "c|a|b|?|14"),
        ("N=4; c $((N*2)) $((M+1))", "c|8|?"),
        ("c --name='$x' a\\$b $jobname", "c|--name=$x|a$b|$jobname"),
        ("c \"$@\" $1 ${2:-q}", "c|?|?|q"),
        ("c a > out.txt 2>&1 < in b", "c|a|b"),
        ("c a \\\n  b # comment 'open\n", "c|a|b"),
        ("X=${X:-/dev/sda}; c --f=$X", "c|--f=/dev/sda"),
        (": \"${D:=/dev/sda}\" ${E=4k}; c $D $E", "c|/dev/sda|4k"),
        ("D=; E=; : ${D:=a} ${E=b}; c x$D x$E", "c|xa|x"),
        ("D=/dev/sdb; c ${D:=/dev/sda} $D", "c|/dev/sdb|/dev/sdb"),
        ("P=/mnt; : ${D:=$P/t}; c $D", "c|/mnt/t"),
        ("read -p 'which? ' D; c $D", "c|?"),
        ("export A=5 B; local C=\"a b\"; c $A $C", "c|5|a|b"),
        ("c '' \"\" x", "c|||x"),
        ("A=$'x'; c $A$\"y\"", "c|xy"),
        ("A=aB; c ${A,,} ${A^^} ${A%b}", "c|ab|AB|?"),
    ] {
        assert_eq!(run(text), [wanted], "{text}");
    }
}

#[test]
fn loops_branches_and_functions() {
    for (text, wanted) in [
        (
            "for i in 1 2 {3..4}; do c $i; done",
            &["c|1", "c|2", "c|3", "c|4"][..],
        ),
        (
            "for a in x y; do for b in 1 2; do c $a$b; done; done",
            &["c|x1", "c|x2", "c|y1", "c|y2"],
        ),
        (
            "for i in $(seq 2 2 6); do c $i; done",
            &["c|2", "c|4", "c|6"],
        ),
        ("L=\"a b\"; for i in $L; do c $i; done", &["c|a", "c|b"]),
        ("for i in $X; do c $i; done", &["c|?"]),
        ("if t; then A=1; else A=2; fi; c $A", &["t", "c|1", "c|2"]),
        ("if t; then A=1; c $A; fi", &["t", "c|1"]),
        ("if t; then A=1; fi; c $A", &["t", "c|1", "c|?"]),
        (
            "A=0; [ x ] && A=1\ncase $1 in a) B=2;; *) B=3;; esac; c $B",
            &["[|x|]", "c|2", "c|3"],
        ),
        ("f() { c $1 $2; }\nf a b; f d", &["c|a|b", "c|d|"]),
        ("f() { c \"$@\"; }\n", &["c|?"]),
        ("function f { A=7; }\nf\nc $A", &["c|7"]),
        ("while read D; do c $D; done < list", &["c|?"]),
        ("x=$(c a | d); (e; f)", &["c|a", "d", "e", "f"]),
        ("c a || d && e; ! g", &["c|a", "d", "e", "g"]),
        ("eval \"c 'a b'\"", &["c|a b"]),
        ("for i in 1; do\n c $i", &["c|1"]),
        ("done; c a; fi", &["c|a"]),
    ] {
        let found = run(text);
        let trimmed: Vec<&str> = found.iter().map(String::as_str).collect();
        let wanted: Vec<String> = wanted
            .iter()
            .map(|one| one.trim_end_matches('|').to_owned())
            .collect();
        let trimmed: Vec<String> = trimmed
            .iter()
            .map(|one| one.trim_end_matches('|').to_owned())
            .collect();
        assert_eq!(trimmed, wanted, "{text}");
    }
}

#[test]
fn files_that_a_script_writes() {
    for text in [
        "B=4k\ncat > j.fio <<EOF\n[j]\nbs=$B\nEOF\n",
        "cat <<'END' >j.fio\n[j]\nbs=4k\nEND\n",
        "cat <<-E > j.fio\n\t[j]\n\tbs=4k\n\tE\n",
        "echo '[j]' > j.fio; echo bs=4k >> j.fio",
        "printf '[j]\\nbs=%s\\n' 4k > j.fio",
        "tee j.fio <<EOF\n[j]\nbs=4k\nEOF\n",
    ] {
        let script = read(text, &BTreeMap::new()).unwrap();
        assert_eq!(script.files["j.fio"], "[j]\nbs=4k\n", "{text}");
    }
    let script = read("echo '[j]' | c -\nc - <<E\n[k]\nE\n", &BTreeMap::new()).unwrap();
    let inputs: Vec<Option<&str>> = script
        .commands
        .iter()
        .map(|one| one.input.as_deref())
        .collect();
    assert!(
        inputs.contains(&Some("[j]\n")) && inputs.contains(&Some("[k]\n")),
        "{inputs:?}"
    );
}

#[test]
fn broken_ones_do_no_harm() {
    for text in [
        "$",
        "${",
        "$(",
        "`",
        "$((",
        "${}",
        "for in",
        "for x in",
        "=",
        "é$é",
        "(((",
        ")))",
        "{ { {",
        "case",
        "case x in",
        "if",
        "if; then",
        "f() ",
        "f() {",
        "a=(",
        "<<",
        "<<EOF",
        "cat <<EOF\nx",
        ">",
        "> >",
        "&",
        ";;",
        "$((9/0))",
        "for i in {1..99999999999}; do c; done",
        "f() { f; f; }; f",
        "while",
        "esac fi done }",
    ] {
        let _ = read(text, &BTreeMap::new());
    }
    let many = |text: &str| text.repeat(4_000);
    for text in [
        many("$("),
        many("${"),
        many("${a:-") + &many("}"),
        many("$(echo ") + &many(")"),
        many("$(("),
        many("(("),
        many("("),
        many("`"),
        many("! "),
        many("function f "),
        many("if "),
        many("for i in 1 2; do "),
        many("f() { "),
        "A=x; for i in {1..64}; do A=$A$A; done; c $A".to_owned(),
        format!("A={}; c {}", "x".repeat(60_000), many("$A")),
        "f() { f; f; }; f".to_owned(),
    ] {
        let _ = read(&text, &BTreeMap::new());
    }
    assert!(read("c 'open", &BTreeMap::new()).is_err());
}
