"""Trees for planted rows: packaged configurations of servers, and certificates.

Each tree is the packaged configuration of Debian 12 (or 13 where a row says so) with a few lines changed.
"""

import os
import subprocess
import tempfile
import time

PASSWD = (
    "root:x:0:0:root:/root:/bin/bash\nwww-data:x:33:33:www-data:/var/www:/usr/sbin/nologin\n"
    "alice:x:1000:1000:Alice:/home/alice:/bin/bash\ngit:x:1001:1001:git:/srv/git:/usr/bin/git-shell\n"
)
GROUP = "root:x:0:\nsudo:x:27:alice\nwww-data:x:33:\nalice:x:1000:\ngit:x:1001:\n"
VERSIONS = {
    "openssh-server": "1:9.2p1-2+deb12u10",
    "openssh-client": "1:9.2p1-2+deb12u10",
    "nginx": "1.22.1-9+deb12u11",
    "apache2": "2.4.71-1~deb12u1",
    "lighttpd": "1.4.69-1",
    "haproxy": "2.6.12-1+deb12u4",
    "postfix": "3.7.11-0+deb12u1",
    "dovecot-core": "1:2.3.19.1+dfsg1-2.1+deb12u7",
    "exim4-config": "4.96-15+deb12u10",
    "exim4-daemon-heavy": "4.96-15+deb12u10",
    "spamassassin": "4.0.1-1~deb12u1",
    "spamd": "4.0.1-1~deb12u1",
    "rspamd": "3.4-1",
    "opendkim": "2.11.0~beta2-8+deb12u1",
    "libssl3": "3.0.22-1~deb12u1",
}


def base(*packages, **versions):
    """Returns the accounts and the package list of a machine."""
    status = ""
    for name in packages + ("libssl3",):
        version = versions.get(name.replace("-", "_"), VERSIONS[name])
        status += f"Package: {name}\nStatus: install ok installed\nArchitecture: amd64\nVersion: {version}\n\n"
    return {"etc/passwd": PASSWD, "etc/group": GROUP, "var/lib/dpkg/status": status}


SSHD_STOCK = """Include /etc/ssh/sshd_config.d/*.conf

KbdInteractiveAuthentication no
UsePAM yes
X11Forwarding yes
PrintMotd no
AcceptEnv LANG LC_*
Subsystem\tsftp\t/usr/lib/openssh/sftp-server
"""


def sshd(dropins=None, main="", before="", stock=SSHD_STOCK):
    tree = {**base("openssh-server", "openssh-client"), "etc/ssh/sshd_config": before + stock + main}
    for name, text in (dropins or {}).items():
        tree[f"etc/ssh/sshd_config.d/{name}"] = text
    return tree


SSH_STOCK = (
    "Include /etc/ssh/ssh_config.d/*.conf\n\nHost *\n    SendEnv LANG LC_*\n    HashKnownHosts yes\n"
    "    GSSAPIAuthentication yes\n"
)


def ssh(dropins, main=""):
    tree = {**base("openssh-client"), "etc/ssh/ssh_config": SSH_STOCK + main}
    for name, text in dropins.items():
        tree[f"etc/ssh/ssh_config.d/{name}"] = text
    return tree


NGINX_STOCK = """user www-data;
worker_processes auto;
pid /run/nginx.pid;
error_log /var/log/nginx/error.log;
include /etc/nginx/modules-enabled/*.conf;
events {
\tworker_connections 768;
}
%s
http {
\tsendfile on;
\ttcp_nopush on;
\ttypes_hash_max_size 2048;
\tinclude /etc/nginx/mime.types;
\tdefault_type application/octet-stream;
\tssl_protocols TLSv1 TLSv1.1 TLSv1.2 TLSv1.3; # Dropping SSLv3, ref: POODLE
\tssl_prefer_server_ciphers on;
\taccess_log /var/log/nginx/access.log;
\tgzip on;
\tinclude /etc/nginx/conf.d/*.conf;
\tinclude /etc/nginx/sites-enabled/*;
}
"""
FASTCGI = "fastcgi_param  SCRIPT_NAME        $fastcgi_script_name;\nfastcgi_param  QUERY_STRING       $query_string;\n"


def nginx(files, outer=""):
    """Returns a tree of nginx; a name without a slash is a site."""
    tree = {
        **base("nginx"),
        "etc/nginx/nginx.conf": NGINX_STOCK % outer,
        "etc/nginx/fastcgi_params": FASTCGI,
        "etc/nginx/mime.types": "types {\n    text/html  html htm shtml;\n}\n",
    }
    for name, text in files.items():
        tree[name if "/" in name else f"etc/nginx/sites-enabled/{name}"] = text
    for one in ("mail", "stream"):
        if f"{one} {{" in outer:
            tree[f"etc/nginx/modules-enabled/50-mod-{one}.conf"] = f"load_module modules/ngx_{one}_module.so;\n"
    return tree


def site(body, listen="80", name="www.example.org"):
    return nginx(
        {"site": f"server {{\n    listen {listen};\n    server_name {name};\n    root /var/www/html;\n{body}\n}}\n"}
    )


APACHE_STOCK = """DefaultRuntimeDir ${APACHE_RUN_DIR}
PidFile ${APACHE_PID_FILE}
Timeout 300
KeepAlive On
MaxKeepAliveRequests 100
KeepAliveTimeout 5
User ${APACHE_RUN_USER}
Group ${APACHE_RUN_GROUP}
HostnameLookups Off
ErrorLog ${APACHE_LOG_DIR}/error.log
LogLevel warn
IncludeOptional mods-enabled/*.load
IncludeOptional mods-enabled/*.conf
Include ports.conf
<Directory />
\tOptions FollowSymLinks
\tAllowOverride None
\tRequire all denied
</Directory>
<Directory /usr/share>
\tAllowOverride None
\tRequire all granted
</Directory>
<Directory /var/www/>
\tOptions Indexes FollowSymLinks
\tAllowOverride None
\tRequire all granted
</Directory>
AccessFileName .htaccess
<FilesMatch "^\\.ht">
\tRequire all denied
</FilesMatch>
IncludeOptional conf-enabled/*.conf
IncludeOptional sites-enabled/*.conf
"""
APACHE_MODULES = [
    "access_compat",
    "alias",
    "auth_basic",
    "authn_core",
    "authn_file",
    "authz_core",
    "authz_host",
    "authz_user",
    "autoindex",
    "cgi",
    "dir",
    "headers",
    "mime",
    "mpm_event",
    "negotiation",
    "proxy",
    "proxy_http",
    "rewrite",
    "setenvif",
    "socache_shmcb",
    "ssl",
    "status",
    "userdir",
    "dav",
    "dav_fs",
]


def apache(files, modules=APACHE_MODULES):
    tree = {
        **base("apache2"),
        "etc/apache2/apache2.conf": APACHE_STOCK,
        "etc/apache2/ports.conf": "Listen 80\n<IfModule ssl_module>\n\tListen 443\n</IfModule>\n",
        "etc/apache2/envvars": (
            "export APACHE_RUN_USER=www-data\nexport APACHE_RUN_GROUP=www-data\n"
            "export APACHE_PID_FILE=/var/run/apache2/apache2.pid\n"
            "export APACHE_RUN_DIR=/var/run/apache2\nexport APACHE_LOG_DIR=/var/log/apache2\n"
        ),
        "etc/apache2/conf-enabled/security.conf": "ServerTokens OS\nServerSignature On\nTraceEnable Off\n",
    }
    for one in modules:
        tree[f"etc/apache2/mods-enabled/{one}.load"] = (
            f"LoadModule {one}_module /usr/lib/apache2/modules/mod_{one}.so\n"
        )
    tree["etc/apache2/mods-enabled/ssl.conf"] = (
        "SSLCipherSuite HIGH:!aNULL\nSSLProtocol all -SSLv3\nSSLSessionTickets off\n"
    )
    tree["etc/apache2/mods-enabled/status.conf"] = (
        "<Location /server-status>\n\tSetHandler server-status\n\tRequire local\n</Location>\nExtendedStatus On\n"
    )
    for name, text in files.items():
        tree[f"etc/apache2/{name}"] = text
    return tree


def vhost(body, port=80):
    name = "mail" if port == 443 else "www"
    return {
        "sites-enabled/site.conf": (
            f"<VirtualHost *:{port}>\n    ServerName {name}.example.org\n"
            f"    DocumentRoot /var/www/html\n{body}\n</VirtualHost>\n"
        )
    }


def certificate(host, start, end, bits=None):
    """Returns a self-signed certificate and its key, made by openssl; dates as YYYYMMDD."""
    with tempfile.TemporaryDirectory(prefix="planted-") as at:

        def run(*words):
            subprocess.run(["openssl", *words], cwd=at, check=True, capture_output=True, stdin=subprocess.DEVNULL)

        with open(os.path.join(at, "ca.cnf"), "w") as out:
            out.write(
                "[ca]\ndefault_ca=d\n[d]\ndatabase=index\nserial=serial\nnew_certs_dir=.\ndefault_md=sha256\n"
                f"policy=p\nx509_extensions=x\n[p]\ncommonName=supplied\n[x]\nsubjectAltName=DNS:{host}\n"
            )
        open(os.path.join(at, "index"), "w").close()
        with open(os.path.join(at, "serial"), "w") as out:
            out.write("01\n")
        kind = ["rsa:%d" % bits] if bits else ["ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
        run("req", "-new", "-newkey", *kind, "-nodes", "-keyout", "key", "-out", "csr", "-subj", f"/CN={host}")
        run(
            "ca",
            "-batch",
            "-notext",
            "-selfsign",
            "-config",
            "ca.cnf",
            "-keyfile",
            "key",
            "-in",
            "csr",
            "-out",
            "crt",
            "-startdate",
            start + "000000Z",
            "-enddate",
            end + "000000Z",
        )
        return tuple(open(os.path.join(at, name)).read() for name in ("crt", "key"))


OLD_CERT, OLD_KEY = certificate("mail.example.org", "20240101", "20250101")
NEW_CERT, NEW_KEY = certificate("mail.example.org", "20260101", "20360101")
OTHER_CERT, OTHER_KEY = certificate("mail.example.org", "20260101", "20360101")
KEY = 0o600
CLOCK = {"proc/stat": f"cpu  1 2 3 4\nbtime {int(time.time()) - 3600}\n", "proc/uptime": "3600.00 7000.00\n"}
