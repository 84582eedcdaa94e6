#!/bin/sh
# Collector of assay @@VERSION@@: reads what `assay check` asks of a machine, and writes it to
# standard output as one bundle (a tar archive, compressed where zstd or gzip is there).
#
#   ssh HOST sh < collector > HOST.bundle        and where assay is: assay check --root HOST.bundle
#   ssh HOST sudo -n sh < collector > HOST.bundle                    the same as root, who may read more
#   ssh HOST sh -s /srv < collector > HOST.bundle                    looks more closely at /srv
#
# It writes no file, changes nothing and sends nothing anywhere else. It reads the files and runs the
# commands that are listed from `collect` on, and nothing else. What is read goes through the first of
# the two awk programs below, on this machine: it lets through what it knows to be harmless and leaves
# out the rest, line by line; passwords, keys, users, addresses and comments stay here. The second one
# packs it. Needed: a POSIX shell and its usual tools (awk, tr, ls, cat, find); busybox has all.

LC_ALL=C
export LC_ALL
PATH=$PATH:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export PATH
umask 077

CLEAN='
@@CLEAN@@'

PACK='
@@PACK@@'

# ---- how things are asked for -------------------------------------------------------------------

newline='
'
tab=$(printf '\t')

# The shell knows no variables of a function's own, so those of the functions below have names of their own.

# A name that can stand in one line.
fits() {
    case $1 in *"$newline"* | *"$tab"*) return 1 ;; esac
}

# Files of a class: file CLASS PATH... Links are noted, and the file is read where it really is.
file() {
    class=$1
    shift
    for file_at; do
        if [ -h "$file_at" ]; then
            fits "$file_at" || continue
            file_real=$(readlink -f -- "$file_at") && [ -n "$file_real" ] && fits "$file_real" || file_real=/nonexistent
            [ "$file_real" = "$file_at" ] || printf 'L %s\t%s\n' "$file_at" "$file_real"
            if [ -f "$file_real" ]; then contents "$class" "$file_real"; else present "$file_real"; fi
        elif [ -f "$file_at" ]; then
            fits "$file_at" && contents "$class" "$file_at"
        elif [ -e "$file_at" ] && [ ! -d "$file_at" ]; then
            fits "$file_at" && printf 'X %s\t\tnot a regular file\n' "$file_at"
        elif [ ! -e "$file_at" ]; then
            absent "$file_at"
        fi
    done
}

# What is in a file: contents CLASS PATH. A program of its own reads it, because mawk, the awk of Debian,
# ends at a file that cannot be read to its end: of a disk that fails, of a device or process that went away.
contents() {
    text "$1" "$2"
    { trouble=$({ head -c 33554433 <"$2" | sed 's/^/O/' >&3; } 2>&1); } 3>&1
    # The last line may have no end.
    if [ -z "$trouble" ]; then printf '\n.\n'; else printf '\n-\nY%s\t%s\n' "$2" "${trouble##*"$newline"}"; fi
}

# Something that is not seen may be there, in a directory that this user may not look into.
absent() {
    hidden=${1%/*}
    while [ -n "$hidden" ] && [ ! -e "$hidden" ]; do hidden=${hidden%/*}; done
    if [ -n "$hidden" ] && [ -d "$hidden" ] && [ ! -x "$hidden" ]; then
        case $1 in *'*'* | *'['*) ;; *) fits "$1" && printf 'X %s\t13\tPermission denied\n' "$1" ;; esac
    fi
}

# What a path is: its kind, its size, for a device its number.
present() {
    for it; do
        [ -e "$it" ] && fits "$it" || continue
        # Mode, links, owner, group, then the size or the two numbers of a device.
        set -- $(ls -lndL -- "$it" 2>/dev/null)
        case ${1-} in
        b*) printf 'S %s\tblock-device\t%s\t%s\t0\n' "$it" "${5%,}" "$6" ;;
        d*) printf 'D %s\n' "$it" ;;
        -*) printf 'S %s\tregular\t0\t0\t%s\n' "$it" "$5" ;;
        ?*) printf 'S %s\tother\t0\t0\t0\n' "$it" ;;
        esac
    done
}

# A directory whose names may be seen. When its place is a link, that is noted.
dir() {
    for dir_at; do
        [ -d "$dir_at" ] && fits "$dir_at" || { [ -e "$dir_at" ] || absent "$dir_at"; continue; }
        dir_real=$(cd -P -- "$dir_at" 2>/dev/null && pwd -P) || { printf 'X %s\t13\tPermission denied\n' "$dir_at"; continue; }
        [ "$dir_real" = "$dir_at" ] || printf 'L %s\t%s\n' "$dir_at" "$dir_real"
        printf 'D %s\n' "$dir_real"
        [ -r "$dir_at" ] || printf 'X %s\t13\tPermission denied\n' "$dir_at"
    done
}

# Files of a class in a directory, by patterns of names: files CLASS DIR PATTERN...
files() {
    class_of=$1 here=$2
    shift 2
    dir "$here"
    [ -d "$here" ] || return 0
    place=$(cd -P -- "$here" 2>/dev/null && pwd -P) || return 0
    for names; do
        for one in "$place"/$names; do file "$class_of" "$one"; done
    done
}

# All files below a directory: tree CLASS DIR. Nothing that is far below belongs to a configuration.
tree() {
    class_of=$1
    [ -e "$2" ] || { absent "$2"; return 0; }
    dir "$2"
    start=$(cd -P -- "$2" 2>/dev/null && pwd -P) || return 0
    find "$start/" -xdev 2>/dev/null | head -n 5000 | while IFS= read -r found; do
        found=${found%/}
        case $found in
        "$start" | "$start"/*/*/*/*/*/*) ;;
        # Certificates are looked at below; keys are not read at all.
        *.pem | *.crt | *.cer | *.cert | *.so) ;;
        *_key | *.key | *.pub) [ -d "$found" ] || ! fits "$found" || printf 'X %s\t\tnot taken: keys are not read\n' "$found" ;;
        *)
            if [ -d "$found" ] && [ ! -h "$found" ]; then dir "$found"; else file "$class_of" "$found"; fi
            ;;
        esac
    done
}

# Names, and what a link leads to, without a look at the file.
links() {
    for link_at; do
        fits "$link_at" || continue
        if [ -h "$link_at" ]; then
            link_real=$(readlink -f -- "$link_at") && fits "$link_real" || continue
            printf 'L %s\t%s\n' "$link_at" "$link_real"
        elif [ -e "$link_at" ]; then
            printf 'F %s\n' "$link_at"
        fi
    done
}

if timeout 5 true 2>/dev/null; then limit='timeout @@SECONDS@@'; else limit=; fi

# The answer of a command, if it is installed: ask CLASS COMMAND ARGUMENT...
ask() {
    class=$1
    shift
    command -v "$1" >/dev/null 2>&1 || return 0
    for word; do fits "$word" || return 0; done
    printf 'C %s\n' "$class"
    for word; do printf 'A%s\n' "$word"; done
    answer "$@"
}
answer() {
    { complaint=$({ { $limit "$@"; printf '\n%s\n' "$?"; } | sed 's/^/O/' >&3; } 2>&1 </dev/null); } 3>&1
    [ -z "$complaint" ] || printf '%s\n' "$complaint" | sed 's/^/E/'
    printf 'Z\n'
}

# The beginning of text; its lines follow, O before each, then a dot, or a hyphen when it is not to be taken.
text() {
    printf 'B %s %s\n' "$1" "$2"
}

# ---- what is asked for --------------------------------------------------------------------------

collect() {
@@COLLECT@@
    kernel
    disks
    mounts
    groups
    filesystems
    temperatures
    pools
    mappers
    machines
    processes
    certificates
    mail
    for target; do look_closer "$target"; done
}

kernel() {
    # The vector of a process holds the size of a page and addresses; this one only the size.
    page=$(getconf PAGESIZE 2>/dev/null) ||
        page=$(awk '/^KernelPageSize:/ { print $2 * 1024; exit }' /proc/self/smaps 2>/dev/null)
    case $page in
    4096) printf 'U \002\020\n' ;;
    16384) printf 'U \002\100\n' ;;
    65536) printf 'U \002\002\001\n' ;;
    esac
}

# Devices are looked at where they really are in the tree of devices.
disks() {
    dir /sys/block /sys/class/block /sys/dev/block
    for path in /sys/block/*; do
        [ -e "$path/dev" ] || continue
        device=$(cd -P -- "$path" && pwd -P) || continue
        node "$path" "$device"
        for part in "$device/${device##*/}"*; do
            [ -e "$part/partition" ] || continue
            node "$path" "$part"
            for name in partition start size alignment_offset dev; do file whole "$part/$name"; done
            beside "$part"
        done
        # Devices that are not set up say nothing.
        read -r size 2>/dev/null <"$device/size" || size=
        file whole "$device/size"
        [ "$size" != 0 ] || [ -d "$device/md" ] || continue
        for name in @@DISK@@; do file whole "$device/$name"; done
        file mapper "$device/dm/uuid"
        beside "$device"
        [ ! -d "$device/md" ] || printf 'D %s\n' "$device/md"
        controller=$device
        while [ -n "$controller" ]; do
            case ${controller##*/} in
            ????:??:??.*) for name in current_link_speed current_link_width max_link_speed max_link_width; do file whole "$controller/$name"; done; break ;;
            esac
            controller=${controller%/*}
        done
    done
    # Without waking a disk that sleeps.
    for path in /sys/block/sd* /sys/block/nvme*n*; do
        name=${path##*/}
        case $name in *[0-9]p[0-9]* | sd*[!a-z]* | nvme*c*n*) continue ;; esac
        [ ! -e "$path" ] || ask smart smartctl -n standby -H -A "/dev/$name"
        # A disk that speaks SCSI itself has a log of errors as well.
        case $name in nvme*) continue ;; esac
        [ -e "$path/device/vendor" ] || continue
        read -r vendor rest 2>/dev/null <"$path/device/vendor" || vendor=
        [ "$vendor" = ATA ] || ask smart smartctl -n standby -l error "/dev/$name"
    done
    for path in /sys/class/ata_link/*; do
        [ -d "$path" ] || continue
        dir "$path"
        for name in sata_spd hw_sata_spd_limit; do file whole "$(cd -P -- "$path" && pwd -P)/$name"; done
    done
}
node() {
    printf 'L /sys/class/block/%s\t%s\n' "${2##*/}" "$2"
    [ "$1" = "$2" ] || case $2 in "$device") printf 'L %s\t%s\n' "$1" "$2" ;; esac
    file whole "$2/dev"
    read -r number 2>/dev/null <"$2/dev" || return 0
    printf 'L /sys/dev/block/%s\t%s\n' "$number" "$2"
}
beside() {
    for name in slaves holders; do
        [ -d "$1/$name" ] || continue
        printf 'D %s\n' "$1/$name"
        links "$1/$name"/*
    done
}

mounts() {
    [ -r /proc/self/mounts ] || return 0
    # Devices that are mounted by name, and the layers of overlays.
    while read -r source point kind options rest; do
        case $source in /dev/*) present "$source" ;; esac
        case $kind,$options in
        overlay,*upperdir=*)
            upper=${options#*upperdir=}
            upper=${upper%%,*}
            case $upper in *\\*) ;; *) [ ! -d "$upper" ] || dir "$upper" ;; esac
            ;;
        esac
    done </proc/self/mounts
}

# The groups that this process is in, up to the root.
groups() {
    [ -r /proc/self/cgroup ] || return 0
    while IFS=: read -r number controllers group; do
        for base in /sys/fs/cgroup /sys/fs/cgroup/unified "/sys/fs/cgroup/${controllers#name=}"; do
            below=$group
            while [ -d "$base" ]; do
                for name in @@CGROUP@@; do file whole "$base${below%/}/$name"; done
                [ -n "${below%/}" ] || break
                below=${below%/*}
            done
        done
    done </proc/self/cgroup
}

filesystems() {
    for path in /sys/fs/btrfs/*/devices; do
        [ -d "$path" ] || continue
        base=${path%/*}
        dir "$path" "$base/features"
        links "$path"/*
        for name in checksum nodesize sectorsize exclusive_operation; do file whole "$base/$name"; done
        if [ -d "$base/devinfo" ]; then dir "$base/devinfo"; fi
        for name in "$base"/devinfo/*; do
            [ -d "$name" ] || continue
            dir "$name"
            file whole "$name/missing" "$name/error_stats" "$name/replace_target"
        done
        for name in "$base"/features/*; do [ ! -f "$name" ] || printf 'F %s\n' "$name"; done
        for kind in data metadata system; do
            for name in "$base/allocation/$kind"/*; do
                if [ -d "$name" ]; then dir "$name"; elif [ -f "$name" ]; then printf 'F %s\n' "$name"; fi
            done
        done
    done
}

temperatures() {
    for path in /sys/class/hwmon/*; do
        [ -e "$path/name" ] || continue
        dir "$path"
        monitor=$(cd -P -- "$path" && pwd -P) || continue
        for name in name temp1_input temp1_max temp1_crit; do file whole "$monitor/$name"; done
        links "$monitor/device"
        present "$(readlink -f -- "$monitor/device")"
    done
}

pools() {
    command -v zpool >/dev/null 2>&1 || return 0
    ask named zpool get -Hp -o name,property,value,source all
    ask status zpool status -LP
    $limit zpool list -H -o name 2>/dev/null | while IFS= read -r pool; do
        ask status zpool status -LP "$pool"
        ask properties zpool get -Hp -oname,property,value path,ashift "$pool" all-vdevs
        ask zdb zdb -C "$pool"
    done
    ask named zfs get -Hp -t filesystem,volume -o name,property,value,source @@ZFS_ASKED@@
}

mappers() {
    for path in /sys/block/dm-*/dm/uuid; do
        [ -f "$path" ] || continue
        read -r uuid 2>/dev/null <"$path" || uuid=
        case $uuid in
        LVM-*) lvm_is_used=yes ;;
        CRYPT-LUKS*)
            for slave in "${path%/dm/uuid}"/slaves/*; do
                [ -e "$slave" ] || continue
                ask luks cryptsetup luksDump "/dev/${slave##*/}"
                break
            done
            ;;
        esac
        mapped_is_used=yes
    done
    [ -z "${mapped_is_used-}" ] || ask table dmsetup table
    # The tools of LVM look at every device, so they are asked only where it is in use.
    [ -z "${lvm_is_used-}" ] || {
@@LVM@@
    }
}

# Virtual machines that libvirt defines: what it writes cannot be cleaned line by line, so it is not read, and
# assay says that it is not known. Those that run are told by the command lines of QEMU, see below.
machines() {
    for path in /etc/libvirt/qemu/*.xml; do
        [ -e "$path" ] || continue
        fits "$path" && printf 'X %s\t\tnot taken by the collector: run assay there\n' "$path"
    done
}

# Libraries that are gone and still used, with the unit of the process; the command lines of QEMU.
processes() {
    printf 'D /proc\n'
    for path in /proc/[0-9]*; do
        case ${path#/proc/} in *[!0-9]*) continue ;; esac
        read -r name 2>/dev/null <"$path/comm" || continue
        case $name in
        qemu-system-* | kvm | qemu-kvm | qemu)
            contents comm "$path/comm"
            if [ -r "$path/cmdline" ]; then
                text qemu "$path/cmdline"
                tr '\000' '\n' 2>/dev/null <"$path/cmdline" | sed 's/^/O/'
                printf '.\n'
            fi
            ;;
        esac
    done
    # Most processes use no such library, and there may be thousands: one program looks at all.
    {
        { trouble=$({ grep -l -E '\.so[^ ]* \(deleted\)$' /proc/[0-9]*/maps >&3; } 2>&1); } 3>&1
        [ -z "$trouble" ] || printf '%s\n' "$trouble" | sed 's/^/Y/'
    } | while IFS= read -r path; do
        case $path in
        Y*) printf '%s\n' "$path" ;;
        *)
            contents maps "$path"
            contents group "${path%/maps}/cgroup"
            ;;
        esac
    done
}

# What waits in the queue of Postfix, and rules that sa-update fetched.
mail() {
    [ ! -e /etc/postfix/main.cf ] || ask queue postqueue -j
    dir /var/lib/spamassassin
    for fetched in /var/lib/spamassassin/[0-9]*/*; do
        [ -d "$fetched" ] || continue
        dir "${fetched%/*}"
        files spam "$fetched" '*.cf'
    done
}

# Of each certificate that a program names: its dates, its key and how it is signed, no names.
certificates() {
    dir /etc/letsencrypt/live
    for path in /etc/letsencrypt/live/*; do
        [ -d "$path" ] || continue
        dir "$path"
        certificate "$path/fullchain.pem"
        key_mode "$path/privkey.pem"
    done
    named='
        { gsub(/[;"\047]/, " ") }
        !/^[ \t]/ { chain = 0 }
        { sub(/^[ \t]+/, "") }
        /^#/ { next }
        /^ssl_certificate[ \t]/ { print "c", base($2, "/etc/nginx") }
        /^ssl_certificate_key[ \t]/ { print "k", base($2, "/etc/nginx") }
        /^smtpd_tls_cert_file[ \t]*=/ { sub(/^[^=]*=[ \t]*/, ""); print "c", base($1, "/etc/postfix") }
        /^smtpd_tls_key_file[ \t]*=/ { sub(/^[^=]*=[ \t]*/, ""); print "k", base($1, "/etc/postfix") }
        /^(ssl_cert|ssl_server_cert_file)[ \t]*=/ { sub(/^[^=]*=[ \t]*<*[ \t]*/, ""); print "c", base($1, "") }
        /^(ssl_key|ssl_server_key_file)[ \t]*=/ { sub(/^[^=]*=[ \t]*<*[ \t]*/, ""); print "k", base($1, "") }
        tolower($1) ~ /^sslcertificate(chain)?file$/ { print "c", base($2, "") }
        tolower($1) ~ /^sslcertificatekeyfile$/ { print "k", base($2, "") }
        # The files of smtpd_tls_chain_files may stand in several lines.
        /^smtpd_tls_chain_files[ \t]*=/ { chain = 1; sub(/^[^=]*=/, "") }
        chain { n = split($0, files, /[ ,\t]+/); for (i = 1; i <= n; i++) if (files[i] != "") { print "c", base(files[i], "/etc/postfix"); print "k", base(files[i], "/etc/postfix") } }
        function base(path, dir) { return path ~ /^\// ? path : dir "/" path }'
    {
        [ ! -d /etc/nginx ] || find /etc/nginx/ -xdev -type f 2>/dev/null | head -n 2000 | while IFS= read -r path; do
            cat -- "$path" 2>/dev/null
        done
        cat /etc/apache2/*-enabled/*.conf /etc/httpd/conf/*.conf /etc/httpd/conf.d/*.conf 2>/dev/null
        cat /etc/postfix/main.cf /etc/dovecot/*.conf /etc/dovecot/conf.d/*.conf 2>/dev/null
    } | awk "$named" | sort -u | while read -r kind path; do
        case $path in *[!A-Za-z0-9/._+*@-]* | '' | [!/]*) continue ;; esac
        case $kind in c) certificate "$path" ;; k) key_mode "$path" ;; esac
    done
}
certificate() {
    fits "$1" || return 0
    place=$1
    if [ -h "$place" ]; then
        place=$(readlink -f -- "$place") && [ -n "$place" ] && fits "$place" || return 0
        printf 'L %s\t%s\n' "$1" "$place"
    fi
    [ -e "$place" ] || { absent "$place"; return 0; }
    [ -f "$place" ] || return 0
    [ -r "$place" ] || { printf 'X %s\t13\tPermission denied\n' "$place"; return 0; }
    command -v openssl >/dev/null 2>&1 || { printf 'X %s\t\tnot taken: openssl, which reads certificates, is not installed there\n' "$place"; return 0; }
    text certificate "$place"
    $limit openssl crl2pkcs7 -nocrl -certfile "$place" 2>/dev/null </dev/null |
        $limit openssl pkcs7 -print_certs -text -noout 2>/dev/null |
        awk '
        function seconds(text,   f, t, y, m, days) {
            # Nov 22 23:58:07 2026 GMT
            split(text, f, " "); split(f[3], t, ":")
            m = (index("JanFebMarAprMayJunJulAugSepOctNovDec", f[1]) + 2) / 3
            y = f[4]; if (m <= 2) { y--; m += 12 }
            days = 365 * y + int(y / 4) - int(y / 100) + int(y / 400) + int((153 * (m - 3) + 2) / 5) + f[2] - 719469
            return sprintf("%.0f", days * 86400 + t[1] * 3600 + t[2] * 60 + t[3])
        }
        function told(more) {
            if (held != "") print held (more ? (held_issuer == subject ? " next " : " gap ") : " end ") held_fetch
            held = ""
            if (until == "") return
            held = "Ocertificate " from " " until " " key " " bits " " signature " " (subject == issuer ? "itself" : "another")
            held_issuer = issuer; held_fetch = fetch
            until = ""
        }
        /^Certificate:/ { told(1); signature = ""; key = "other"; bits = 0; fetch = "-" }
        /^ *CA Issuers - / { fetch = "fetch" }
        /^ *Signature Algorithm:/ && signature == "" { signature = $3 }
        /^ *Issuer:/ { issuer = $0; sub(/^ *Issuer: */, "", issuer) }
        /^ *Subject:/ { subject = $0; sub(/^ *Subject: */, "", subject) }
        /^ *Not Before *:/ { sub(/^ *Not Before *: */, ""); from = seconds($0) }
        /^ *Not After *:/ { sub(/^ *Not After *: */, ""); until = seconds($0) }
        /^ *Public Key Algorithm:/ { key = $4 ~ /^rsa/ ? "RSA" : $4 ~ /^dsa/ ? "DSA" : $4 ~ /^id-ecPublicKey/ ? "EC" : tolower($4) ~ /^ed(25519|448)/ ? "EdDSA" : "other" }
        /Public-Key: \([0-9]+ bit/ { if (key == "RSA") { bits = $0; sub(/^.*\(/, "", bits); sub(/ bit.*$/, "", bits) } }
        END { told(1); told(0) }'
    printf '.\n'
}
# Who may read a key, and who may enter the directories above it; the key itself is not read.
key_mode() {
    fits "$1" || return 0
    [ -e "$1" ] || [ ! -h "$1" ] || { links "$1"; return 0; }
    [ -e "$1" ] || { absent "$1"; return 0; }
    present "$1"
    mode_of "$1"
    key_real=$(readlink -f -- "$1") && fits "$key_real" || return 0
    [ "$key_real" = "$1" ] || { links "$1"; present "$key_real"; }
    while [ "$key_real" != / ]; do
        key_real=${key_real%/*}
        key_real=${key_real:-/}
        mode_of "$key_real"
    done
}
mode_of() {
    printf 'C digits\n'
    for word in @@MODE_OF@@ "$1"; do printf 'A%s\n' "$word"; done
    answer stat -L -c %a "$1"
}

# A path that was named on the command line: what lies under it.
look_closer() {
    case $1 in /*) ;; *) return 0 ;; esac
    [ -e "$1" ] && fits "$1" || return 0
    links "$1"
    real=$(readlink -f -- "$1") && fits "$real" || return 0
    [ "$real" = "$1" ] || printf 'L %s\t%s\n' "$1" "$real"
    present "$1" "$real"
    set -- "$1" $(df -P -k -- "$1" 2>/dev/null | awk 'NR > 1 && $2 ~ /^[0-9]+$/ { print $2 * 1024, $4 * 1024, $6; exit }')
    [ $# -lt 4 ] || printf 'V %s\t%.0f\t%.0f\n' "$1" "$2" "$3"
    kind= source= point=
    [ -r /proc/self/mounts ] || return 0
    while read -r a b c rest; do
        [ "$b" != "${4-}" ] || { source=$a point=$b kind=$c; }
    done </proc/self/mounts
    case $kind in
    zfs)
        ask properties zfs get -Hp -o property,value,source all "$source"
        ask properties zpool get -Hp -o property,value,source all "${source%%/*}"
        ;;
    btrfs) ask btrfs btrfs property get -t inode "$real" ;;
    xfs) ask xfs xfs_info "$point" ;;
    ext2 | ext3 | ext4)
        device=$(readlink -f -- "$source") && ask ext4 dumpe2fs -h "/dev/${device##*/}"
        ;;
    esac
}

main() {
    if zstd --version >/dev/null 2>&1; then
        form=zstd; pack='zstd -q -3 -c'
    elif gzip --version >/dev/null 2>&1 || gzip --help >/dev/null 2>&1; then
        form=gzip; pack='gzip -c'
    else
        form=plain; pack=cat
    fi
    # A banner may stand before this line.
    printf 'assay-bundle 1 %s\n' "$form"
    # Without the mark at the end, the archive says that it is not whole.
    { collect "$@"; printf '!\n'; } | awk "$CLEAN" | awk -v VERSION='@@VERSION@@' "$PACK" | tr '\002' '\000' | $pack
}
main "$@" </dev/null
