"""Planted rows: ssh, nginx, Apache, lighttpd, HAProxy, PHP, Squid. See `run_planted`."""

SSHD = "etc/ssh/sshd_config"
NGX = "etc/nginx/nginx.conf"
HTTP = "events {{}}\nhttp {{\n    include /etc/nginx/conf.d/*.conf;\n    include /etc/nginx/sites-enabled/*;\n{}}}\n"
NGINX = {NGX: HTTP.format("")}
SITE = "etc/nginx/sites-enabled/default"
CIPHERS_OK = "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256"


def site(body, name=SITE):
    return {**NGINX, name: "server {\n    listen 80;\n    server_name a.example;\n    root /srv/www;\n" + body + "}\n"}


def tls(body):
    return {**NGINX, SITE: "server {\n    listen 443 ssl;\n    server_name a.example;\n    root /srv/www;\n"
            "    ssl_certificate /etc/ssl/a.pem;\n    ssl_certificate_key /etc/ssl/a.key;\n" + body + "}\n"}


def drop_in(text, main="Include /etc/ssh/sshd_config.d/*.conf\n", name="50-cloud-init.conf"):
    return {SSHD: main, "etc/ssh/sshd_config.d/" + name: text}


ROWS = [
    ("sshd-root-in-drop-in", r"sshd-root", drop_in("permitrootlogin \"yes\"\n"),
     drop_in("permitrootlogin \"without-password\"\n")),
    ("sshd-root-in-match", r"sshd-root", {SSHD: "PermitRootLogin no\nMatch Address 10.0.0.0/8\n    PermitRootLogin yes\n"},
     {SSHD: "PermitRootLogin no\nMatch Address 10.0.0.0/8\n    PermitRootLogin prohibit-password\n"}),
    ("sshd-root-equals-sign", r"sshd-root", {SSHD: "PermitRootLogin=yes\n"}, {SSHD: "PermitRootLogin=no\n"}),
    ("sshd-empty-passwords", r"sshd-empty", {SSHD: "PermitEmptyPasswords yes\nPasswordAuthentication yes\n"},
     {SSHD: "PasswordAuthentication yes\n# PermitEmptyPasswords yes\n"}),
    ("sshd-strict-modes", r"sshd-strict", {SSHD: "StrictModes no\n"}, {SSHD: "StrictModes yes\n"}),
    ("sshd-ciphers-cbc", r"sshd-weak", {SSHD: "Ciphers aes256-ctr,3des-cbc\n"}, {SSHD: "Ciphers -3des-cbc,*-cbc\n"}),
    ("sshd-macs-md5", r"sshd-weak", {SSHD: "MACs hmac-sha2-512,hmac-md5-96\n"}, {SSHD: "MACs hmac-sha2-512-etm@openssh.com,hmac-sha2-256\n"}),
    ("sshd-kex-group1", r"sshd-weak", {SSHD: "KexAlgorithms +diffie-hellman-group1-sha1\n"}, {SSHD: "KexAlgorithms -diffie-hellman-group14-sha1\n"}),
    ("sshd-hostkey-dss", r"sshd-weak|dss|dsa", {SSHD: "HostKeyAlgorithms +ssh-dss\n"}, {SSHD: "HostKeyAlgorithms ssh-ed25519,rsa-sha2-512\n"}),
    ("sshd-x11-everywhere", r"x11", {SSHD: "X11Forwarding yes\nX11UseLocalhost no\n"}, {SSHD: "X11Forwarding yes\n"}),
    ("sshd-gateway-ports", r"gateway", {SSHD: "GatewayPorts yes\n"}, {SSHD: "GatewayPorts no\n"}),
    ("sshd-max-auth-tries", r"max-auth|MaxAuth", {SSHD: "MaxAuthTries 100\n"}, {SSHD: "MaxAuthTries 4\n"}),
    ("sshd-grace-none", r"grace", {SSHD: "LoginGraceTime 0\n"}, {SSHD: "LoginGraceTime 30s\n"}),
    ("sshd-env", r"environment", {SSHD: "PermitUserEnvironment yes\n"}, {SSHD: "PermitUserEnvironment no\n"}),
    ("sshd-hostbased", r"hostbased|rhosts", {SSHD: "HostbasedAuthentication yes\nIgnoreRhosts no\n"}, {SSHD: "HostbasedAuthentication no\n"}),
    ("sshd-line-after-match", r"void|line|match", {SSHD: "Match User bob\n    X11Forwarding no\nUsePAM yes\nPort 2222\n"},
     {SSHD: "Port 2222\nUsePAM yes\nMatch User bob\n    X11Forwarding no\n"}),
    ("sshd-ignorerhosts", r"rhosts|hostbased", {SSHD: "IgnoreRhosts no\nHostbasedAuthentication yes\n"}, {SSHD: "IgnoreRhosts yes\n"}),
    ("ssh-client-unchecked", r"ssh-host-keys", {"etc/ssh/ssh_config.d/10-lab.conf": "Host *\n    StrictHostKeyChecking no\n    UserKnownHostsFile /dev/null\n", "etc/ssh/ssh_config": "Include /etc/ssh/ssh_config.d/*.conf\n"},
     {"etc/ssh/ssh_config.d/10-lab.conf": "Host *\n    StrictHostKeyChecking accept-new\n", "etc/ssh/ssh_config": "Include /etc/ssh/ssh_config.d/*.conf\n"}),
    ("ssh-client-agent", r"agent", {"etc/ssh/ssh_config": "Host *\n    ForwardAgent yes\n"}, {"etc/ssh/ssh_config": "Host bastion.example.org\n    ProxyJump none\nHost *\n    ForwardAgent no\n"}),

    ("nginx-tls-old-in-conf.d", r"tls-1-0|sslv3", {NGX: HTTP.format(""), "etc/nginx/conf.d/tls.conf": "ssl_protocols TLSv1 TLSv1.1 TLSv1.2;\n", **{k: v for k, v in tls("").items() if k != NGX}},
     {NGX: HTTP.format("    ssl_protocols TLSv1.2 TLSv1.3;\n"), "etc/nginx/conf.d/tls.conf": "# ssl_protocols TLSv1 TLSv1.1;\n", **{k: v for k, v in tls("").items() if k != NGX}}),
    ("nginx-second-server", r"sslv3", {**tls("    ssl_protocols TLSv1.2;\n"), "etc/nginx/conf.d/b.conf": "server {\n  listen 8443 ssl; server_name b.example;\n  ssl_certificate /a; ssl_certificate_key /b;\n  ssl_protocols SSLv3 TLSv1.2;\n}\n"}, tls("    ssl_protocols TLSv1.2;\n")),
    ("nginx-3des", r"weak-ciphers|3des", tls("    ssl_ciphers 'ECDHE-RSA-AES128-GCM-SHA256:DES-CBC3-SHA';\n"), tls("    ssl_ciphers 'ECDHE-RSA-AES128-GCM-SHA256:!DES-CBC3-SHA:!3DES';\n")),
    ("nginx-null", r"weak|rc4|cipher", tls("    ssl_ciphers ALL:eNULL;\n"), tls("    ssl_ciphers HIGH:!aNULL:!eNULL:!MD5;\n")),
    ("nginx-stream-tls", r"tls-1-0|sslv3", {NGX: "events {}\nstream {\n  server {\n    listen 993 ssl;\n    ssl_protocols TLSv1;\n    ssl_certificate /a; ssl_certificate_key /b;\n    proxy_pass 127.0.0.1:143;\n  }\n}\n"},
     {NGX: "events {}\nstream {\n  server {\n    listen 993;\n    proxy_pass 127.0.0.1:143;\n  }\n}\n"}),
    ("nginx-mail-tls", r"tls-1-0|sslv3", {NGX: "events {}\nmail {\n  auth_http 127.0.0.1:9000/a;\n  server {\n    listen 993 ssl; protocol imap;\n    ssl_protocols TLSv1 TLSv1.2;\n    ssl_certificate /a; ssl_certificate_key /b;\n  }\n}\n"},
     {NGX: "events {}\nmail {\n  auth_http 127.0.0.1:9000/a;\n  server {\n    listen 993 ssl; protocol imap;\n    ssl_protocols TLSv1.2 TLSv1.3;\n    ssl_certificate /a; ssl_certificate_key /b;\n  }\n}\n"}),
    ("nginx-alias", r"alias", site("    location /i {\n        alias /srv/images/;\n    }\n"), site("    location /i/ {\n        alias /srv/images/;\n    }\n")),
    ("nginx-alias-nested", r"alias", site("    location / {\n    location ^~ /media { alias /srv/media/; }\n    }\n"), site("    location = /media { alias /srv/media/index.html; }\n")),
    ("nginx-autoindex", r"autoindex", site("    location /pub/ { autoindex on; }\n    location / { autoindex on; }\n"), site("    autoindex off;\n")),
    ("nginx-status", r"status", site("    location /nginx_status { stub_status; }\n"), site("    location /nginx_status { stub_status; allow 127.0.0.1; deny all; }\n")),
    ("nginx-status-basic-auth", r"status", site("    location = /status { stub_status on; access_log off; }\n"), site("    location = /status { auth_basic x; auth_basic_user_file /etc/nginx/p; stub_status on; }\n")),
    ("nginx-php", r"php", site("    location ~ \\.php$ { fastcgi_pass unix:/run/php.sock; include fastcgi_params; fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name; fastcgi_split_path_info ^(.+\\.php)(/.+)$; }\n"), site("    location ~ \\.php$ { try_files $uri =404; fastcgi_pass unix:/run/php.sock; include fastcgi_params; }\n")),
    ("nginx-headers", r"header", {**site("    add_header Strict-Transport-Security \"max-age=31536000\";\n    add_header X-Frame-Options DENY;\n    location /a/ { add_header Cache-Control public; }\n")},
     site("    add_header X-Frame-Options DENY;\n    location /a/ { expires 1d; }\n")),
    ("nginx-root-slash", r"root", site("    location /d { root /; }\n"), site("    location /d { root /srv; }\n")),
    ("nginx-redirect-split", r"redirect|split", site("    location ~ /v1/([^.]*) { return 302 https://b.example/$1$uri; }\n    location / { return 301 https://$host$uri; }\n"), site("    location / { return 301 https://$host$request_uri; }\n")),
    ("nginx-git-served", r"git|serves", {**site(""), "srv/www/index.html": "x", "srv/www/.git/HEAD": "ref: refs/heads/main\n", "srv/www/.git/config": "[core]\n"},
     {**site("    location ~ /\\.(?!well-known) { deny all; }\n"), "srv/www/index.html": "x", "srv/www/.git/HEAD": "ref: refs/heads/main\n"}),
    ("nginx-dump-served", r"git|serves|backup", {**site(""), "srv/www/index.php": "x", "srv/www/wp-config.php.bak": "<?php define('DB_PASSWORD','x');\n"},
     {**site(""), "srv/www/index.php": "x", "srv/www/wp-config.php": "<?php define('DB_PASSWORD','x');\n"}),
    ("nginx-host-header", r"host", site("    location / { proxy_pass http://127.0.0.1:8080; proxy_set_header Host $http_host; }\n"), site("    location / { proxy_pass http://127.0.0.1:8080; proxy_set_header Host $host; }\n")),
    ("nginx-if-in-location", r"if|pitfall", site("    location / { if ($http_user_agent ~ MSIE) { proxy_set_header X y; add_header A b; } try_files $uri /index.html; }\n"), site("    location / { if ($request_method = POST) { return 405; } }\n")),
    ("nginx-hsts-short", r"hsts|header", tls("    add_header Strict-Transport-Security \"max-age=0\" always;\n    add_header Strict-Transport-Security \"includeSubDomains\";\n"), tls("    add_header Strict-Transport-Security \"max-age=63072000\" always;\n")),
    ("nginx-body-unlimited", r"body", site("    client_max_body_size 0;\n"), site("    client_max_body_size 64m;\n")),
    ("nginx-resolver-ssrf", r"proxy|ssrf|forward", site("    resolver 1.1.1.1;\n    location ~ /proxy/(.*)/(.*)/(.*)$ { proxy_pass $1://$2/$3; }\n"), site("    location /api/ { proxy_pass http://127.0.0.1:8080; }\n")),

    ("apache-sslv3", r"sslv3|tls-1-0", {"etc/apache2/apache2.conf": "IncludeOptional mods-enabled/*.conf\nIncludeOptional sites-enabled/*.conf\n", "etc/apache2/mods-enabled/ssl.conf": "<IfModule mod_ssl.c>\n  sslprotocol ALL -SSLv2\n</IfModule>\n", "etc/apache2/mods-enabled/ssl.load": "LoadModule ssl_module x.so\n", "etc/apache2/sites-enabled/a.conf": "<VirtualHost *:443>\n SSLEngine on\n SSLProtocol all \\\n   +SSLv3\n</VirtualHost>\n"},
     {"etc/apache2/apache2.conf": "IncludeOptional sites-enabled/*.conf\n", "etc/apache2/sites-enabled/a.conf": "<VirtualHost *:443>\n SSLEngine on\n SSLProtocol -all \\\n   +TLSv1.2 +TLSv1.3\n</VirtualHost>\n"}),
    ("apache-tls10", r"tls-1-0", {"etc/apache2/apache2.conf": "<VirtualHost *:443>\nSSLEngine on\nSSLProtocol all -SSLv3\n</VirtualHost>\n".replace("all -SSLv3", "TLSv1 TLSv1.1 TLSv1.2")}, {"etc/apache2/apache2.conf": "<VirtualHost *:443>\nSSLEngine on\nSSLProtocol all -SSLv3 -TLSv1 -TLSv1.1\n</VirtualHost>\n"}),
    ("apache-rc4", r"rc4|weak", {"etc/apache2/apache2.conf": "<VirtualHost *:443>\nSSLEngine on\nSSLCipherSuite HIGH:MEDIUM:RC4-SHA\n</VirtualHost>\n"}, {"etc/apache2/apache2.conf": "<VirtualHost *:443>\nSSLEngine on\nSSLCipherSuite HIGH:!RC4:!3DES:!aNULL\n</VirtualHost>\n"}),
    ("apache-3des", r"weak|3des", {"etc/apache2/apache2.conf": "<VirtualHost *:443>\nSSLEngine on\nSSLCipherSuite \"ECDHE+AESGCM:3DES\"\n</VirtualHost>\n"}, {"etc/apache2/apache2.conf": "<VirtualHost *:443>\nSSLEngine off\nSSLCipherSuite \"ECDHE+AESGCM\"\n</VirtualHost>\n"}),
    ("apache-status", r"status", {"etc/apache2/apache2.conf": "<Location \"/server-status\">\n SetHandler server-status\n Require all granted\n</Location>\n"}, {"etc/apache2/apache2.conf": "<Location \"/server-status\">\n SetHandler server-status\n Require local\n</Location>\n"}),
    ("apache-info", r"status|info", {"etc/apache2/apache2.conf": "<Location /server-info>\n sethandler server-info\n Order allow,deny\n Allow from all\n</Location>\n"}, {"etc/apache2/apache2.conf": "<Location /server-info>\n sethandler server-info\n Require ip 10.0.0.0/8\n</Location>\n"}),
    ("apache-listing", r"listing", {"etc/apache2/apache2.conf": "<Directory /var/www/>\n Options Indexes FollowSymLinks\n Require all granted\n</Directory>\n", "etc/apache2/mods-enabled/autoindex.load": "LoadModule autoindex_module x\n"}, {"etc/apache2/apache2.conf": "<Directory /var/www/>\n Options -Indexes +FollowSymLinks\n Require all granted\n</Directory>\n"}),
    ("apache-root-granted", r"root", {"etc/apache2/apache2.conf": "<Directory />\n Options FollowSymLinks\n AllowOverride None\n Require all granted\n</Directory>\n"}, {"etc/apache2/apache2.conf": "<Directory />\n Options FollowSymLinks\n AllowOverride None\n Require all denied\n</Directory>\n"}),
    ("apache-git", r"git|serves", {"etc/apache2/apache2.conf": "<VirtualHost *:80>\n DocumentRoot /srv/a\n</VirtualHost>\n<Directory /srv/a>\n Require all granted\n</Directory>\n", "srv/a/.git/HEAD": "ref: refs/heads/main\n", "srv/a/index.html": "x"},
     {"etc/apache2/apache2.conf": "<VirtualHost *:80>\n DocumentRoot /srv/a/public\n</VirtualHost>\n<Directory /srv/a>\n Require all granted\n</Directory>\n", "srv/a/.git/HEAD": "ref: refs/heads/main\n", "srv/a/public/index.html": "x"}),
    ("apache-trace", r"trace", {"etc/apache2/apache2.conf": "TraceEnable On\n<VirtualHost *:80>\n</VirtualHost>\n"}, {"etc/apache2/apache2.conf": "TraceEnable Off\n<VirtualHost *:80>\n</VirtualHost>\n"}),
    ("apache-proxy-open", r"proxy", {"etc/apache2/apache2.conf": "ProxyRequests On\n<Proxy *>\n Require all granted\n</Proxy>\n"}, {"etc/apache2/apache2.conf": "ProxyRequests Off\nProxyPass / http://127.0.0.1:8080/\n"}),
    ("lighttpd-sslv3", r"sslv3|tls|weak", {"etc/lighttpd/lighttpd.conf": "server.port = 443\nssl.engine = \"enable\"\nssl.use-sslv3 = \"enable\"\n"}, {"etc/lighttpd/lighttpd.conf": "server.port = 443\nssl.engine = \"enable\"\nssl.use-sslv3 = \"disable\"\n"}),
    ("lighttpd-openssl-conf", r"tls-1-0|sslv3|weak", {"etc/lighttpd/lighttpd.conf": "ssl.engine = \"enable\"\nssl.openssl.ssl-conf-cmd = (\"MinProtocol\" => \"TLSv1\")\n"}, {"etc/lighttpd/lighttpd.conf": "ssl.engine = \"enable\"\nssl.openssl.ssl-conf-cmd = (\"MinProtocol\" => \"TLSv1.2\")\n"}),
    ("lighttpd-listing", r"listing|autoindex", {"etc/lighttpd/lighttpd.conf": "dir-listing.activate = \"enable\"\nserver.document-root = \"/var/www\"\n"}, {"etc/lighttpd/lighttpd.conf": "dir-listing.activate = \"disable\"\nserver.document-root = \"/var/www\"\n"}),
    ("haproxy-tls10", r"tls-1-0", {"etc/haproxy/haproxy.cfg": "frontend f\n  bind *:443 ssl crt /etc/a.pem ssl-min-ver TLSv1.0\n  default_backend b\nbackend b\n  server a 127.0.0.1:80\n"}, {"etc/haproxy/haproxy.cfg": "frontend f\n  bind *:443 ssl crt /etc/a.pem ssl-min-ver TLSv1.2\n"}),
    ("haproxy-3des-global", r"cipher|weak", {"etc/haproxy/haproxy.cfg": "global\n  ssl-default-bind-ciphers ECDHE-RSA-AES128-GCM-SHA256:DES-CBC3-SHA\nfrontend f\n  bind *:443 ssl crt /etc/a.pem\n"}, {"etc/haproxy/haproxy.cfg": "global\n  ssl-default-bind-ciphers ECDHE-RSA-AES128-GCM-SHA256:!3DES\nfrontend f\n  bind *:443 ssl crt /etc/a.pem\n"}),
    ("haproxy-rc4-bind", r"cipher|weak|rc4", {"etc/haproxy/haproxy.cfg": "frontend f\n  bind :443 ssl crt /etc/a.pem ciphers RC4-SHA:AES128-SHA\n"}, {"etc/haproxy/haproxy.cfg": "frontend f\n  bind :443 ssl crt /etc/a.pem ciphers AES128-SHA:!RC4\n"}),
    ("haproxy-stats", r"statistic", {"etc/haproxy/haproxy.cfg": "listen stats\n  bind *:8404\n  stats enable\n  stats uri /stats\n"}, {"etc/haproxy/haproxy.cfg": "listen stats\n  bind *:8404\n  stats enable\n  stats uri /stats\n  stats auth a:b\n"}),
    ("haproxy-socket", r"socket", {"etc/haproxy/haproxy.cfg": "global\n  stats socket ipv4@0.0.0.0:9999 level admin\n"}, {"etc/haproxy/haproxy.cfg": "global\n  stats socket /run/haproxy/admin.sock mode 660 level admin\n"}),
    ("haproxy-no-verify", r"verif|backend", {"etc/haproxy/haproxy.cfg": "backend b\n  server a 203.0.113.5:443 ssl verify none\n"}, {"etc/haproxy/haproxy.cfg": "backend b\n  server a 203.0.113.5:443 ssl verify required ca-file /etc/ssl/certs/ca-certificates.crt\n"}),
    ("php-url-include", r"php", {"etc/php/8.2/fpm/php.ini": "allow_url_include = On\n"}, {"etc/php/8.2/fpm/php.ini": "; allow_url_include = On\nallow_url_include = Off\n"}),
    ("php-conf.d-errors", r"php", {"etc/php/8.2/fpm/php.ini": "display_errors = Off\n", "etc/php/8.2/fpm/conf.d/99-local.ini": "display_errors = On\n"}, {"etc/php/8.2/fpm/php.ini": "display_errors = Off\n", "etc/php/8.2/cli/conf.d/99-local.ini": "display_errors = On\n"}),
    ("php-pool-open", r"php", {"etc/php/8.2/fpm/pool.d/www.conf": "[www]\nuser = www-data\nlisten = 0.0.0.0:9000\n"}, {"etc/php/8.2/fpm/pool.d/www.conf": "[www]\nuser = www-data\nlisten = 127.0.0.1:9000\n"}),
    ("php-pool-admin-value", r"php", {"etc/php/8.2/fpm/pool.d/www.conf": "[www]\nuser = www-data\nlisten = /run/p.sock\nphp_flag[display_errors] = on\n"}, {"etc/php/8.2/fpm/pool.d/www.conf": "[www]\nuser = www-data\nlisten = /run/p.sock\nphp_admin_flag[display_errors] = off\n"}),
    ("squid-named-acl", r"squid", {"etc/squid/squid.conf": "acl everyone src 0.0.0.0/0\nhttp_access allow everyone\nhttp_access deny all\nhttp_port 3128\n"}, {"etc/squid/squid.conf": "acl office src 192.0.2.0/24\nhttp_access allow office\nhttp_access deny all\nhttp_port 3128\n"}),
    ("squid-conf.d", r"squid", {"etc/squid/squid.conf": "include /etc/squid/conf.d/*.conf\nhttp_access deny all\nhttp_port 3128\n", "etc/squid/conf.d/me.conf": "http_access allow all\n"}, {"etc/squid/squid.conf": "http_access allow localhost\ninclude /etc/squid/conf.d/*.conf\nhttp_access deny all\nhttp_port 3128\n", "etc/squid/conf.d/me.conf": "acl lan src 10.0.0.0/8\nhttp_access allow lan\n"}),
]
