"""Planted rows: ssh, in unusual but valid spellings. See `run_planted`."""

from packaged_trees import ssh, sshd

MANY_ROOT = 'permitrootlogin=yes\nPasswordAuthentication "yes"\n'

ROWS = [
    # --- sshd ---
    (
        "sshd-root-first-dropin",
        "root-password",
        sshd({"10-own.conf": MANY_ROOT, "50-hard.conf": "PermitRootLogin no\n"}),
        sshd(
            {
                "10-own.conf": "permitrootlogin=prohibit-password\n",
                "50-hard.conf": '#PermitRootLogin yes\nPasswordAuthentication "yes"\n',
            }
        ),
    ),
    (
        "sshd-root-match-everywhere",
        "root-password",
        sshd(main="PermitRootLogin no\nMatch Address 0.0.0.0/0,::/0\n\tPermitRootLogin yes\n"),
        sshd(main="PermitRootLogin no\nMatch Address 0.0.0.0/0,::/0\n\tPermitRootLogin prohibit-password\n"),
    ),
    (
        "sshd-root-keyboard",
        "root-password",
        sshd({"a.conf": "PasswordAuthentication no\nChallengeResponseAuthentication yes\nPermitRootLogin yes\n"}),
        sshd(
            {
                "a.conf": (
                    "PasswordAuthentication no\nChallengeResponseAuthentication yes\nPermitRootLogin yes\n"
                    "AuthenticationMethods publickey\n"
                )
            }
        ),
    ),
    (
        "sshd-empty-passwords-match",
        "empty-passwords",
        sshd(main="Match Group=guests\n\tPermitEmptyPasswords=yes\n"),
        sshd(main="Match Group=guests\n\tPasswordAuthentication no\n\tPermitEmptyPasswords=yes\n"),
    ),
    (
        "sshd-ciphers-plus",
        "weak-algorithms",
        sshd({"c.conf": "Ciphers +aes128-cbc,3des-cbc\n"}),
        sshd({"c.conf": "Ciphers -*-cbc,3des-cbc\n"}),
    ),
    (
        "sshd-macs-plus",
        "weak-algorithms",
        sshd({"c.conf": "MACs = +hmac-md5,hmac-sha1-96\n"}),
        sshd({"c.conf": "MACs = -hmac-sha1*,hmac-md5*\n"}),
    ),
    (
        "sshd-kex-front",
        "weak-algorithms",
        sshd({"c.conf": "KexAlgorithms ^diffie-hellman-group1-sha1\n"}),
        sshd({"c.conf": "KexAlgorithms ^sntrup761x25519-sha512@openssh.com\n"}),
    ),
    (
        "sshd-dss-old-name",
        "weak-algorithms",
        sshd({"c.conf": "PubkeyAcceptedKeyTypes +ssh-dss\n"}),
        sshd({"c.conf": "PubkeyAcceptedKeyTypes -ssh-rsa\n"}),
    ),
    (
        "sshd-user-environment",
        "user-environment",
        sshd({"e.conf": "PermitUserEnvironment LANG,LD_*\n"}),
        sshd({"e.conf": "PermitUserEnvironment LANG,LC_*\n"}),
    ),
    (
        "sshd-strict-modes",
        "strict-modes",
        sshd({"s.conf": "strictmodes=no\n"}, main="StrictModes yes\n"),
        sshd({"s.conf": "#strictmodes=no\n"}, main="StrictModes yes\n"),
    ),
    (
        "sshd-keys-in-tmp",
        "keys-in-shared",
        sshd({"k.conf": "AuthorizedKeysFile none\n"}, before="AuthorizedKeysFile /tmp/keys/%u\n"),
        sshd({"k.conf": "AuthorizedKeysFile /tmp/keys/%u\n"}, before="AuthorizedKeysFile /etc/ssh/keys/%u\n"),
    ),
    (
        "sshd-group-missing",
        "nobody-allowed",
        sshd({"g.conf": "AllowGroups wheel\n"}),
        sshd({"g.conf": "AllowGroups wheel sudo\n"}),
    ),
    (
        "sshd-match-ends-with-file",
        "root-password",
        sshd({"10.conf": "Match User git\n\tX11Forwarding no\n", "20.conf": MANY_ROOT}),
        sshd({"10.conf": "Match User git\n\tX11Forwarding no\n" + MANY_ROOT}),
    ),
    (
        "sshd-rhosts",
        "hostbased",
        sshd({"h.conf": "HostbasedAuthentication yes\nIgnoreRhosts shosts-only\n"}),
        sshd({"h.conf": "HostbasedAuthentication no\nIgnoreRhosts shosts-only\n"}),
    ),
    (
        "sshd-grace",
        "login-grace",
        sshd({"l.conf": "LoginGraceTime 0h0m\n"}),
        sshd({"l.conf": "LoginGraceTime 1m30s\n"}),
    ),
    # --- ssh ---
    (
        "ssh-keys-unchecked",
        "host-keys-unchecked",
        ssh({"x.conf": "Host *.example.net\n  StrictHostKeyChecking=off\n  UserKnownHostsFile=/dev/null\n"}),
        ssh(
            {
                "a.conf": "Host *\n  StrictHostKeyChecking=accept-new\n",
                "x.conf": "Host *.example.net\n  StrictHostKeyChecking=off\n",
            }
        ),
    ),
    (
        "ssh-agent-everywhere",
        "agent-to-all",
        ssh({"a.conf": "ForwardAgent $SSH_AUTH_SOCK\n"}),
        ssh({"a.conf": "Match all\n  ForwardAgent no\n"}, main="    ForwardAgent yes\n"),
    ),
    (
        "ssh-x11-trusted",
        "displays-to-all",
        ssh({"x.conf": "Host *\n  ForwardX11 yes\n"}),
        ssh({"x.conf": "Host *\n  ForwardX11 yes\n  ForwardX11Trusted no\n"}),
    ),
]
