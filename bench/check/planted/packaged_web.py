"""Planted rows: nginx and Apache, in unusual but valid spellings. See `run_planted`."""

from packaged_trees import (
    CLOCK,
    KEY,
    NEW_CERT,
    NEW_KEY,
    OTHER_CERT,
    apache,
    nginx,
    site,
    vhost,
)

CIPHERS0 = "ALL:@SECLEVEL=0"
SSL = "    ssl_certificate /etc/ssl/certs/mail.pem;\n    ssl_certificate_key /etc/ssl/private/mail.key;\n"
NG_TLS = {
    "etc/ssl/certs/mail.pem": NEW_CERT,
    "etc/ssl/private/mail.key": (NEW_KEY, KEY),
    "etc/ssl/certs/ca.pem": OTHER_CERT,
    **CLOCK,
}
AP_TLS = (
    "    SSLEngine on\n    SSLCertificateFile /etc/ssl/certs/mail.pem\n"
    "    SSLCertificateKeyFile /etc/ssl/private/mail.key\n"
)

ROWS = [
    # --- nginx ---
    (
        "nginx-alias",
        "alias-traversal",
        site('    location ^~ /img {\n        alias "/srv/img/";\n    }'),
        site('    location ~ ^/img/([a-z]+\\.png)$ {\n        alias "/srv/img/$1";\n    }'),
    ),
    (
        "nginx-split-header",
        "redirect-splitting",
        site("    return 302 https://www.example.org$document_uri;"),
        site("    return 302 https://www.example.org$request_uri;"),
    ),
    (
        "nginx-allow-alone",
        "allow-without-deny",
        site("    deny all;\n    location /status/ {\n        allow 10.0.0.0/8;\n    }"),
        site("    deny all;\n    location /status/ {\n        allow 10.0.0.0/8;\n        deny all;\n    }"),
    ),
    (
        "nginx-satisfy-any",
        "any-without-password",
        site(
            '    satisfy any;\n    allow 0.0.0.0/0;\n    deny all;\n    auth_basic "x";\n'
            "    auth_basic_user_file /etc/nginx/users;"
        ),
        site(
            '    satisfy any;\n    allow 10.1.0.0/16;\n    deny all;\n    auth_basic "x";\n'
            "    auth_basic_user_file /etc/nginx/users;"
        ),
    ),
    (
        "nginx-htpasswd-served",
        "serves-hidden",
        site(
            "    location /in/ {\n        auth_basic x;\n        auth_basic_user_file /var/www/html/.htpasswd;\n    }"
        ),
        site(
            "    location /in/ {\n        auth_basic x;\n        auth_basic_user_file /var/www/html/.htpasswd;\n    }\n"
            "    location ~ /\\.ht {\n        deny all;\n    }"
        ),
    ),
    (
        "nginx-seclevel",
        "cipher-level|tls-1-0",
        nginx(
            {
                "etc/nginx/conf.d/tls.conf": f'ssl_ciphers "{CIPHERS0}";\n',
                "s": "server {\n    listen 443 ssl;\n    server_name mail.example.org;\n" + SSL + "}\n",
            }
        )
        | NG_TLS,
        nginx({"s": "server {\n    listen 443 ssl;\n    server_name mail.example.org;\n" + SSL + "}\n"}) | NG_TLS,
    ),
    (
        "nginx-mail-starttls-on",
        "mail-cleartext",
        nginx(
            {},
            "mail {\n    auth_http 127.0.0.1:9000/auth;\n    starttls on;\n    server {\n        listen 143;\n"
            "        protocol imap;\n    " + SSL + "    }\n}\n",
        )
        | NG_TLS,
        nginx(
            {},
            "mail {\n    auth_http 127.0.0.1:9000/auth;\n    starttls on;\n    server {\n        listen 143;\n"
            "        protocol imap;\n        starttls only;\n    " + SSL + "    }\n}\n",
        )
        | NG_TLS,
    ),
    (
        "nginx-stream-upstream",
        "upstream-unverified",
        nginx(
            {},
            "stream {\n    upstream far {\n        server 203.0.113.9:6514;\n    }\n    server {\n"
            "        listen 127.0.0.1:6514;\n        proxy_pass far;\n        proxy_ssl on;\n    }\n}\n",
        ),
        nginx(
            {},
            "stream {\n    proxy_ssl_verify on;\n    proxy_ssl_trusted_certificate /etc/ssl/certs/ca.pem;\n"
            "    proxy_ssl_name logs.example.net;\n    upstream far {\n        server 203.0.113.9:6514;\n    }\n"
            "    server {\n        listen 127.0.0.1:6514;\n        proxy_pass far;\n        proxy_ssl on;\n    }\n}\n",
        )
        | NG_TLS,
    ),
    (
        "nginx-grpcs",
        "upstream-unverified",
        site("    location /api.Service/ {\n        grpc_pass grpcs://api.example.net:443;\n    }"),
        site(
            "    grpc_ssl_verify on;\n    grpc_ssl_trusted_certificate /etc/ssl/certs/ca.pem;\n"
            "    location /api.Service/ {\n        grpc_pass grpcs://api.example.net:443;\n    }"
        )
        | NG_TLS,
    ),
    (
        "nginx-client-cert",
        "client-certificates",
        site(
            SSL + "    ssl_client_certificate /etc/ssl/certs/ca.pem;\n    ssl_verify_client optional_no_ca;\n"
            "    location /admin/ {\n        proxy_pass http://127.0.0.1:8080;\n    }",
            "443 ssl",
            "mail.example.org",
        )
        | NG_TLS,
        site(
            SSL + "    ssl_client_certificate /etc/ssl/certs/ca.pem;\n    ssl_verify_client on;\n"
            "    location /admin/ {\n        proxy_pass http://127.0.0.1:8080;\n    }",
            "443 ssl",
            "mail.example.org",
        )
        | NG_TLS,
    ),
    (
        "nginx-real-ip",
        "real-ip",
        nginx(
            {
                "etc/nginx/conf.d/ip.conf": "set_real_ip_from 0.0.0.0/0;\nreal_ip_header X-Forwarded-For;\n",
                "s": (
                    "server {\n    listen 80;\n    root /var/www/html;\n    location /admin/ {\n        allow"
                    " 10.0.0.0/8;\n        deny all;\n    }\n}\n"
                ),
            }
        ),
        nginx(
            {
                "etc/nginx/conf.d/ip.conf": "set_real_ip_from 10.0.0.5;\nreal_ip_header X-Forwarded-For;\n",
                "s": (
                    "server {\n    listen 80;\n    root /var/www/html;\n    location /admin/ {\n        allow"
                    " 10.0.0.0/8;\n        deny all;\n    }\n}\n"
                ),
            }
        ),
    ),
    (
        "nginx-cached-cookies",
        "cookies-cached",
        nginx(
            {
                "etc/nginx/conf.d/c.conf": "proxy_cache_path /var/cache/nginx/a keys_zone=a:10m;\n",
                "s": (
                    "server {\n    listen 80;\n    location / {\n        proxy_pass http://127.0.0.1:8080;\n"
                    "        proxy_cache a;\n        proxy_cache_valid 200 10m;\n"
                    '        proxy_ignore_headers Cache-Control "Set-Cookie";\n    }\n}\n'
                ),
            }
        ),
        nginx(
            {
                "etc/nginx/conf.d/c.conf": "proxy_cache_path /var/cache/nginx/a keys_zone=a:10m;\n",
                "s": (
                    "server {\n    listen 80;\n    location / {\n        proxy_pass http://127.0.0.1:8080;\n"
                    "        proxy_cache a;\n        proxy_cache_valid 200 10m;\n"
                    '        proxy_ignore_headers Cache-Control "Set-Cookie";\n        proxy_hide_header Set-Cookie;\n'
                    "    }\n}\n"
                ),
            }
        ),
    ),
    (
        "nginx-dav",
        "webdav",
        site("    location /up/ {\n        dav_methods PUT DELETE MKCOL;\n    }"),
        site(
            "    location /up/ {\n        dav_methods PUT DELETE MKCOL;\n        limit_except GET {\n"
            "            allow 10.0.0.0/8;\n            deny all;\n        }\n    }"
        ),
    ),
    (
        "nginx-log-off",
        "error-log-off",
        site("    error_log off;"),
        site("    error_log /dev/null crit;\n    access_log off;"),
    ),
    (
        "nginx-cors",
        "origin-reflected",
        site(
            "    add_header Access-Control-Allow-Origin $http_origin always;\n"
            "    add_header Access-Control-Allow-Credentials true always;"
        ),
        site(
            "    add_header Access-Control-Allow-Origin https://app.example.org always;\n"
            "    add_header Access-Control-Allow-Credentials true always;"
        ),
    ),
    (
        "nginx-root-etc",
        "root-system",
        site('    location /conf/ {\n        root "/etc/nginx/..";\n    }'),
        site('    location /conf/ {\n        root "/etc/nginx/../../srv/conf";\n    }'),
    ),
    # --- apache ---
    (
        "apache-forward-proxy",
        "forward-proxy",
        apache(
            vhost("    ProxyRequests On\n    <Proxy *>\n        Order deny,allow\n        Allow from all\n    </Proxy>")
        ),
        apache(vhost("    ProxyRequests On\n    <Proxy *>\n        Require ip 10.0.0.0/8\n    </Proxy>")),
    ),
    (
        "apache-seclevel",
        "cipher-level|tls-1-0",
        apache(vhost(AP_TLS + "    SSLProtocol all\n    SSLCipherSuite DEFAULT:@SECLEVEL=0", 443)) | NG_TLS,
        apache(
            vhost(
                AP_TLS + "    SSLProtocol all\n    SSLProtocol -all +TLSv1.2 +TLSv1.3\n    SSLCipherSuite DEFAULT", 443
            )
        )
        | NG_TLS,
    ),
    (
        "apache-client-cert",
        "client-certificates",
        apache(
            vhost(
                AP_TLS + '    SSLCACertificateFile /etc/ssl/certs/ca.pem\n    <Location "/admin">\n'
                "        SSLVerifyClient optional_no_ca\n    </Location>",
                443,
            )
        )
        | NG_TLS,
        apache(
            vhost(
                AP_TLS + '    SSLCACertificateFile /etc/ssl/certs/ca.pem\n    <Location "/admin">\n'
                "        SSLVerifyClient require\n    </Location>",
                443,
            )
        )
        | NG_TLS,
    ),
    (
        "apache-proxy-name",
        "backend-unverified",
        apache(
            vhost(
                "    SSLProxyEngine on\n    SSLProxyVerify require\n    SSLProxyCACertificateFile"
                " /etc/ssl/certs/ca.pem\n    SSLProxyCheckPeerName off\n    SSLProxyCheckPeerCN off\n    ProxyPass"
                ' "/api/" "https://api.example.net/"'
            )
        )
        | NG_TLS,
        apache(
            vhost(
                "    SSLProxyEngine on\n    SSLProxyVerify require\n    SSLProxyCACertificateFile"
                ' /etc/ssl/certs/ca.pem\n    SSLProxyCheckPeerCN off\n    ProxyPass "/api/" "https://api.example.net/"'
            )
        )
        | NG_TLS,
    ),
    (
        "apache-trace",
        "trace",
        apache(vhost("    TraceEnable extended")),
        apache({"conf-enabled/a.conf": "TraceEnable extended\n"}),
    ),
    (
        "apache-rewrite-proxy",
        "proxies-anywhere",
        apache(vhost('    RewriteEngine on\n    RewriteRule "^/fetch/(.*)$" "http://$1" [P,L]')),
        apache(vhost('    RewriteEngine on\n    RewriteRule "^/fetch/(.*)$" "http://127.0.0.1:8080/$1" [P,L]')),
    ),
    (
        "apache-proxypass-slash",
        "host-completed",
        apache(vhost('    ProxyPass "/app/" "http://10.0.0.7"')),
        apache(vhost('    ProxyPass "/app/" "http://10.0.0.7/"')),
    ),
    (
        "apache-ifmodule-typo",
        "module-impossible",
        apache(
            vhost(
                "    <IfModule mod_authz_host>\n        <Location /admin>\n            Require ip 10.0.0.0/8\n"
                "        </Location>\n    </IfModule>"
            )
        ),
        apache(
            vhost(
                "    <IfModule authz_host_module>\n        <Location /admin>\n            Require ip 10.0.0.0/8\n"
                "        </Location>\n    </IfModule>"
            )
        ),
    ),
    (
        "apache-password-served",
        "serves-hidden",
        apache(
            vhost(
                "    <Location /in>\n        AuthType Basic\n        AuthName in\n"
                '        AuthUserFile "/var/www/html/users.txt"\n        Require valid-user\n    </Location>'
            )
        ),
        apache(
            vhost(
                "    <Location /in>\n        AuthType Basic\n        AuthName in\n"
                '        AuthUserFile "/var/www/html/.htusers"\n        Require valid-user\n    </Location>'
            )
        ),
    ),
    (
        "apache-status-open",
        "status-open",
        apache(
            vhost(
                '    <LocationMatch "^/srv-stat">\n        SetHandler "server-status"\n        Require all granted\n'
                "    </LocationMatch>"
            )
        ),
        apache(
            vhost(
                '    <LocationMatch "^/srv-stat">\n        SetHandler "server-status"\n        Require local\n'
                "    </LocationMatch>"
            )
        ),
    ),
    (
        "apache-dav-open",
        "webdav",
        apache(
            vhost("    <Directory /var/www/html/up>\n        Dav On\n        Require all granted\n    </Directory>")
        ),
        apache(vhost("    <Directory /var/www/html/up>\n        Dav On\n        Require all denied\n    </Directory>")),
    ),
    (
        "apache-userdir-root",
        "home-of-root",
        apache(
            {"mods-enabled/userdir.conf": 'UserDir ./\n<Directory "/root">\n    Require all granted\n</Directory>\n'}
        ),
        apache({"mods-enabled/userdir.conf": "UserDir public_html\nUserDir disabled root\n"}),
    ),
]
