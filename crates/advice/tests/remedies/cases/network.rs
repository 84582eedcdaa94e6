//! Remedies for tunnels and wireless networks.

use super::Act::{Do, PasteIn};
use super::Case;

/// Script that starts the tunnel with keys and certificates of the test.
const OPENVPN: &str = r#"
conf=$(ls /etc/openvpn/server/*.conf /etc/openvpn/*.conf 2>/dev/null | head -n 1)
cd "$(dirname "$conf")"
openssl req -x509 -newkey rsa:2048 -nodes -keyout server.key -out server.crt -subj /CN=s 2> /dev/null
cp server.crt ca.crt
openssl genpkey -genparam -algorithm DH -pkeyopt group:ffdhe2048 -out dh2048.pem 2> /dev/null
openvpn --genkey secret static.key
if grep -q '<secret>' "$conf"; then
    sed -i '/<secret>/,/<\/secret>/d' "$conf"
    { echo '<secret>'; cat static.key; echo '</secret>'; } >> "$conf"
fi
timeout 20 openvpn --config "$conf" --verb 1 > /tmp/log 2>&1 &
for _ in $(seq 100); do
    ! grep -q 'link remote' /tmp/log || break
    kill -0 $! || break
    sleep 0.1
done
! grep -q 'features disabled' /tmp/log && grep -q 'link remote' /tmp/log || { cat /tmp/log; exit 1; }
"#;

/// Script that starts the access point on a driver that sends nothing.
const HOSTAPD: &str = r#"
for conf in /*.conf; do
    { grep -v '^driver=' "$conf"; echo driver=none; } > /tmp/conf
    timeout 20 hostapd /tmp/conf > /tmp/log 2>&1 &
    for _ in $(seq 100); do
        ! grep -q 'AP-ENABLED' /tmp/log || continue 2
        kill -0 $! || break
        sleep 0.1
    done
    cat /tmp/log; exit 1
done
"#;

/// Script that replaces the setting in the command in all files.
const SET: &str = r#"
key=${COMMAND%%=*}
for conf in /*.conf; do sed -i "/^$key=/d" "$conf"; echo "$COMMAND" >> "$conf"; done"#;

macro_rules! hostapd {
    ($page:literal, $($act:expr),+) => {
        Case {
            page: $page,
            trees: &["hostapd"],
            needs: "hostapd",
            furnish: "",
            acts: &[$($act),+],
            accepted: HOSTAPD,
        }
    };
}

pub const CASES: &[&[Case]] = &[
    &[
        Case {
            page: "openvpn-64-bit-blocks",
            trees: &["data-ciphers", "fallback", "ncp", "server"],
            needs: "openvpn",
            // The fixture about ciphers has no key.
            furnish: r#"
for one in /etc/openvpn/server/*.conf; do
    grep -q '^server' "$one" || printf 'tls-server\nca ca.crt\ncert server.crt\nkey server.key\ndh none\n' >> "$one"
done"#,
            acts: &[
                Do(
                    "remove `cipher` and `data-ciphers-fallback`",
                    r#"sed -i -E '/^(cipher|data-ciphers-fallback|ncp-ciphers|data-ciphers) /d' "$FILE""#,
                ),
                PasteIn("data-ciphers AES", &[], r#"echo "$COMMAND" >> "$FILE""#),
            ],
            accepted: OPENVPN,
        },
        Case {
            page: "openvpn-64-bit-blocks",
            trees: &["static-key"],
            needs: "openvpn",
            furnish: "",
            acts: &[PasteIn(
                "cipher AES-256-CBC",
                &[],
                r#"sed -i "/^cipher/d" "$FILE"; echo "$COMMAND" >> "$FILE""#,
            )],
            accepted: OPENVPN,
        },
        Case {
            page: "openvpn-compression",
            trees: &["server"],
            needs: "openvpn",
            furnish: "",
            acts: &[Do(
                "Remove `comp-lzo` and `compress` on both ends",
                r#"sed -i -E '/^(comp-lzo|compress)/d' "$FILE""#,
            )],
            accepted: OPENVPN,
        },
        Case {
            page: "openvpn-compression",
            trees: &["server"],
            needs: "openvpn",
            furnish: "",
            acts: &[PasteIn(
                "compress migrate",
                &[],
                r#"sed -i -E '/^(comp-lzo|compress)/d' "$FILE"; echo "$COMMAND" >> "$FILE""#,
            )],
            accepted: OPENVPN,
        },
        Case {
            page: "openvpn-unencrypted",
            trees: &["before-2.6", "in-a-list"],
            needs: "openvpn",
            furnish: "",
            acts: &[
                Do(
                    "remove `none`",
                    r#"sed -i -E '/^cipher none/d; s/:NONE//' "$FILE""#,
                ),
                PasteIn(
                    "data-ciphers AES",
                    &[],
                    r#"sed -i '/^data-ciphers /d' "$FILE"; echo "$COMMAND" >> "$FILE""#,
                ),
            ],
            accepted: OPENVPN,
        },
        Case {
            page: "openvpn-unencrypted",
            trees: &["plain"],
            needs: "openvpn",
            furnish: "",
            acts: &[
                Do(
                    "remove `none`",
                    r#"sed -i '/^cipher none/d' "$FILE""#,
                ),
                PasteIn("data-ciphers AES", &[], r#"echo "$COMMAND" >> "$FILE""#),
                Do(
                    "write `tls-server` on one end and `tls-client` on the other, with `ca`, `cert` and `key`, \
                     and `dh none` on the server",
                    r#"printf 'tls-server\nca ca.crt\ncert server.crt\nkey server.key\ndh none\n' >> "$FILE""#,
                ),
            ],
            accepted: OPENVPN,
        },
        Case {
            page: "openvpn-unencrypted",
            trees: &["static-key"],
            needs: "openvpn",
            furnish: "",
            acts: &[PasteIn(
                "cipher AES-256-CBC",
                &[],
                r#"sed -i '/^--cipher/d' "$FILE"; echo "$COMMAND" >> "$FILE""#,
            )],
            accepted: OPENVPN,
        },
    ],
    &[
        hostapd!(
            "wifi-frames-unprotected",
            PasteIn("ieee80211w=1", &[], SET)
        ),
        hostapd!("wifi-hidden", PasteIn("ignore_broadcast_ssid=0", &[], SET)),
        hostapd!(
            "wifi-slow-rates",
            PasteIn("basic_rates=", &[], SET),
            PasteIn("supported_rates=", &[], SET)
        ),
        hostapd!(
            "wifi-tkip",
            PasteIn("wpa=2", &[], SET),
            PasteIn("rsn_pairwise=CCMP", &[], SET)
        ),
        hostapd!(
            "wifi-40-mhz-in-2-4-ghz",
            Do(
                "no `[HT40+]` or `[HT40-]` in `ht_capab`",
                "sed -i -E 's/\\[HT40[+-]\\]//' /hostapd.conf"
            )
        ),
        hostapd!(
            "wifi-channel-between",
            Do(
                "Choose 1, 6 or 11",
                "sed -i 's/^channel=.*/channel=6/' /hostapd.conf"
            )
        ),
        hostapd!(
            "wifi-radar-channel",
            Do(
                "choose 36 to 48",
                "sed -i 's/^channel=.*/channel=36/' /hostapd.conf"
            )
        ),
        hostapd!(
            "wifi-wep",
            Do(
                "Set the network to WPA2 with AES, or to WPA3",
                "sed -i '/^wep/d' /hostapd.conf
printf 'wpa=2\\nwpa_key_mgmt=WPA-PSK\\nrsn_pairwise=CCMP\\nieee80211w=1\\nwpa_passphrase=twelve letters\\n' >> /hostapd.conf"
            )
        ),
        hostapd!(
            "wifi-open",
            PasteIn("wpa=2", &[], SET),
            PasteIn("wpa_key_mgmt=WPA-PSK", &[], SET),
            PasteIn("rsn_pairwise=CCMP", &[], SET),
            PasteIn("ieee80211w=1", &[], SET),
            Do(
                "`wpa_passphrase=` with a password of yours",
                "for one in /*.conf; do echo 'wpa_passphrase=twelve letters' >> $one; done"
            )
        ),
        hostapd!(
            "wifi-wpa3-without-frames",
            Do(
                "In hostapd: `ieee80211w=2`; `ieee80211w=1` where `wpa_key_mgmt` names WPA-PSK as well",
                "for one in /*.conf; do sed -i /^ieee80211w=/d $one
if grep -q WPA-PSK $one; then echo ieee80211w=1 >> $one; else echo ieee80211w=2 >> $one; fi; done"
            )
        ),
    ],
];
