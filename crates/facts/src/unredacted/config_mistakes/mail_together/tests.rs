use super::super::{found, mail};
use super::*;

fn of(files: &[(&str, &str)], name: &str) -> String {
    let mut all = found(files, collect);
    all.extend(found(files, mail::collect));
    let own: Vec<&str> = all
        .iter()
        .filter_map(|one| one.strip_prefix(name)?.strip_prefix('='))
        .collect();
    own.join(" ")
}

#[test]
fn aliases_of_root() {
    for (text, expected) in [
        ("root: /dev/null\n", "true"),
        ("root: nobody\nnobody: /dev/null\n", "true"),
        ("root: admin@example.org\nnobody: /dev/null\n", "false"),
        ("postmaster: root\n", "false"),
    ] {
        assert_eq!(of(&[(ALIASES[0], text)], "discarded"), expected, "{text}");
    }
}

#[test]
fn mail_without_tls() {
    for (main, expected) in [
        ("smtp_tls_security_level = none\n", "true"),
        ("smtp_tls_security_level = may\n", "false"),
        (
            "smtp_tls_security_level = none\nrelayhost = [127.0.0.1]:25\n",
            "false",
        ),
    ] {
        assert_eq!(of(&[(POSTFIX, main)], "never_encrypts"), expected, "{main}");
    }
}

#[test]
fn services_of_postfix() {
    let master = "/etc/postfix/master.cf";
    let smtp = "smtp inet n - y - - smtpd\ncleanup unix n - y - 0 cleanup\n";
    for (main, more, name, expected) in [
        (
            "content_filter = amavis:[127.0.0.1]:10024\n",
            "",
            "transport_missing",
            "true",
        ),
        (
            "content_filter = amavis:[127.0.0.1]:10024\n",
            "amavis unix - - y - 2 smtp\n",
            "transport_missing",
            "false",
        ),
        ("virtual_transport = $x\n", "", "transport_missing", ""),
        (
            "myhostname = a\n",
            "smtps inet n - y - - smtpd\n",
            "port_465_without_tls",
            "true",
        ),
        (
            "myhostname = a\n",
            "smtps inet n - y - - smtpd\n  -o smtpd_tls_wrappermode=yes\n",
            "port_465_without_tls",
            "false",
        ),
    ] {
        let text = format!("{smtp}{more}");
        assert_eq!(
            of(&[(POSTFIX, main), (master, &text)], name),
            expected,
            "{main}{more}"
        );
    }
}

#[test]
fn sockets_of_both_sides() {
    let sasl =
        "smtpd_sasl_auth_enable = yes\nsmtpd_sasl_type = dovecot\nsmtpd_sasl_path = private/auth\n";
    let auth =
        "service auth {\n unix_listener /var/spool/postfix/private/auth {\n mode = 0660\n }\n}\n";
    let lmtp = "mailbox_transport = lmtp:unix:private/dovecot-lmtp\n";
    for (main, dovecot, name, expected) in [
        (sasl, "protocols = imap\n", "login_socket_missing", "true"),
        (sasl, auth, "login_socket_missing", "false"),
        (lmtp, auth, "delivery_socket_missing", "true"),
        (
            lmtp,
            "service lmtp {\n unix_listener /var/spool/postfix/private/dovecot-lmtp {\n mode = 0600\n }\n}\n",
            "delivery_socket_missing",
            "false",
        ),
        (
            "mydestination = a\nhome_mailbox = Maildir/\n",
            "mail_location = mbox:~/mail\n",
            "delivered_elsewhere",
            "true",
        ),
        (
            "mydestination = a\nhome_mailbox = Maildir/\n",
            "mail_location = maildir:~/Maildir\n",
            "delivered_elsewhere",
            "false",
        ),
        (
            "mydestination = a\n",
            "mail_location = maildir:~/Maildir\n",
            "delivered_elsewhere",
            "true",
        ),
        (
            "mydestination = a\nmailbox_command = x\n",
            "mail_location = maildir:~/Maildir\n",
            "delivered_elsewhere",
            "",
        ),
    ] {
        assert_eq!(
            of(&[(POSTFIX, main), (DOVECOT, dovecot)], name),
            expected,
            "{main}{dovecot}"
        );
    }
}

#[test]
fn sockets_of_milters() {
    let main = "smtpd_milters = inet:127.0.0.1:8891\n";
    for (line, expected) in [
        ("Socket local:/run/opendkim/opendkim.sock\n", "true"),
        ("Socket inet:8891@localhost\n", "false"),
    ] {
        assert_eq!(
            of(&[(POSTFIX, main), (OPENDKIM, line)], "milter_elsewhere"),
            expected,
            "{line}"
        );
    }
    let unix = "smtpd_milters = unix:/opendkim/opendkim.sock\n";
    let line = "Socket local:/var/spool/postfix/opendkim/opendkim.sock\n";
    assert_eq!(
        of(&[(POSTFIX, unix), (OPENDKIM, line)], "milter_elsewhere"),
        "false"
    );
}

#[test]
fn mail_that_dovecot_may_lose() {
    let fstab = ("/etc/fstab", "nas:/m /srv/mail nfs4 hard 0 0\n");
    for (dovecot, name, expected) in [
        (
            "mail_location = maildir:/tmp/m/%u\n",
            "mail_is_temporary",
            "true",
        ),
        (
            "mail_location = maildir:/var/vmail/%u\n",
            "mail_is_temporary",
            "false",
        ),
        (
            "service doveadm {\n inet_listener http {\n port = 8080\n }\n}\n",
            "login_port_open",
            "true",
        ),
        ("mail_fsync = never\n", "never_synced", "true"),
        ("mail_fsync = optimized\n", "never_synced", "false"),
        (
            "service auth {\n inet_listener {\n port = 12345\n }\n}\n",
            "login_port_open",
            "true",
        ),
        (
            "service auth {\n inet_listener {\n address = 127.0.0.1\n port = 12345\n }\n}\n",
            "login_port_open",
            "false",
        ),
        (
            "mail_location = maildir:/srv/mail/%u\n",
            "indexes_mapped",
            "true",
        ),
        (
            "mail_location = maildir:/srv/mail/%u\nmmap_disable = yes\n",
            "indexes_mapped",
            "false",
        ),
        (
            "mail_location = maildir:/var/vmail/%u\n",
            "indexes_mapped",
            "",
        ),
    ] {
        assert_eq!(
            of(&[(DOVECOT, dovecot), fstab], name),
            expected,
            "{dovecot}"
        );
    }
}
