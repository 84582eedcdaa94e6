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
# packs it. Needed: a POSIX shell and its usual tools (awk, tr, ls, head, sed); busybox has all.
#
# It ends after @@END@@ seconds (assay_deadline=SECONDS in its environment changes that), and when the ssh
# server that started it is gone; until then no process of it uses more CPU time than that.

LC_ALL=C
export LC_ALL
PATH=$PATH:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export PATH
umask 077
case ${assay_deadline-} in '' | *[!0-9]*) assay_deadline=@@END@@ ;; esac
ulimit -t "$assay_deadline" 2>/dev/null

CLEAN='
@@CLEAN@@'

PACK='
@@PACK@@'

# ---- how things are asked for -------------------------------------------------------------------

newline='
'
tab=$(printf '\t')
control=$(printf '\001\002\003\004\005\006\007\010\011\012\013\014\015\016\017\020')
control=$control$(printf '\021\022\023\024\025\026\027\030\031\032\033\034\035\036\037\177')

# The shell knows no variables of a function's own, so those of the functions below have names of their own.

# A name that can travel: a record is a line, and a path has an end.
fits() {
    case $1 in *["$control"]*) return 1 ;; esac
    [ "${#1}" -le 4000 ]
}

# A name that cannot travel makes the directory above it one that is not known as a whole.
left_out() {
    left_path=$1
    until fits "$left_path"; do
        case $left_path in */*) left_path=${left_path%/*} ;; *) return 0 ;; esac
    done
    printf 'X %s\t\ta name in it has control characters and was left out\n' "${left_path:-/}"
}
travels() { fits "$1" || { left_out "$1"; return 1; }; }

# Where a path really is, in $real. Only a link to a file needs a process. The dot keeps line breaks at the end of a
# name, which $( ) takes away.
find_real() {
    if [ -d "$1" ] && cd -P -- "$1" 2>/dev/null; then
        real=$PWD
        cd /
    elif [ ! -h "$1" ] && [ -e "$1" ] && cd -P -- "${1%/*}/" 2>/dev/null; then
        real=${PWD%/}/${1##*/}
        cd /
    else
        case $reals in
        "$1$tab"*)
            real=${reals%%"$newline"*}
            real=${real#"$1$tab"} reals=${reals#*"$newline"}
            ;;
        *)
            real=$(readlink -f -- "$1" 2>/dev/null && printf .) || return 1
            real=${real%"$newline".}
            ;;
        esac
    fi
    [ -n "$real" ] && fits "$real"
}
find_real_dir() {
    cd -P -- "$1" 2>/dev/null || return 1
    real=$PWD
    cd /
    travels "$real"
}

# Asks once where links to files lead; find_real takes the answers in the same order: find_links PATH...
reals=
find_links() {
    asked_links= links_left=256
    for link_at; do
        [ -h "$link_at" ] && [ -f "$link_at" ] && [ "$links_left" -gt 0 ] && fits "$link_at" || continue
        asked_links=$asked_links$link_at$newline links_left=$((links_left - 1))
    done
    reals=
    [ "$links_left" -lt 255 ] || return 0
    set -f
    IFS=$newline
    # shellcheck disable=SC2086 # one word a line
    set -- $asked_links
    unset IFS
    set +f
    # Some tools take one path only. A name with a line break gives a line too many.
    found_links=$(readlink -f -- "$@" 2>/dev/null) || return 0
    for link_at; do
        [ -n "$found_links" ] || { reals=; return 0; }
        reals=$reals$link_at$tab${found_links%%"$newline"*}$newline
        case $found_links in *"$newline"*) found_links=${found_links#*"$newline"} ;; *) found_links= ;; esac
    done
    [ -z "$found_links" ] || reals=
}

# Files of a class: file CLASS PATH... Links are noted, and the file is read where it really is.
file() {
    class=$1
    shift
    for file_at; do
        if [ -h "$file_at" ]; then
            travels "$file_at" || continue
            if find_real "$file_at"; then
                [ "$real" = "$file_at" ] || printf 'L %s\t%s\n' "$file_at" "$real"
                if [ -f "$real" ]; then contents "$class" "$real"; else present "$real"; fi
            else
                # It leads to itself, to nothing, or to a name that cannot travel: what opening it says is kept.
                if [ ! -e "$file_at" ] || [ -f "$file_at" ]; then contents "$class" "$file_at"; fi
                printf 'L %s\t/nonexistent\n' "$file_at"
            fi
        elif [ -f "$file_at" ]; then
            travels "$file_at" && contents "$class" "$file_at"
        elif [ -e "$file_at" ] && [ ! -d "$file_at" ]; then
            travels "$file_at" && printf 'X %s\t\tnot a regular file\n' "$file_at"
        elif [ ! -e "$file_at" ]; then
            absent "$file_at"
        fi
    done
}

# What is in a file: contents CLASS PATH. A program of its own reads it, because mawk, the awk of Debian,
# ends at a file that cannot be read to its end: of a disk that fails, of a device or process that went away.
# One process reads many files, see read_queue; names that its complaints could quote otherwise are read one by one.
contents() {
    case $2 in /sys/* | /proc/sys/*) ! one_line "$1" "$2" || return 0 ;; esac
    if [ -n "$prefix" ] && [ -r "$2" ] && [ "${#2}" -le 1000 ]; then
        case $2 in *[!A-Za-z0-9/._+@:,=-]*) ;; *) queue_file "$1" "$2"; return 0 ;; esac
    fi
    contents_alone "$1" "$2"
}
contents_alone() {
    text "$1" "$2"
    if [ -n "$mark" ]; then
        # The lines as they are, up to one that no file holds: two processes less for each file.
        printf 'R%s\n' "$mark"
        { trouble=$(head -c 33554433 2>&1 >&3 <"$2"); } 3>&1
        printf '\n%s\n' "$mark"
    else
        { trouble=$({ head -c 33554433 <"$2" | sed 's/^/O/' >&3; } 2>&1); } 3>&1
        printf '\n'
    fi
    # The last line may have no end.
    if [ -z "$trouble" ]; then printf '.\n'; else printf -- '-\nY%s\t%s\n' "$2" "${trouble##*"$newline"}"; fi
}

# The text of a file follows later, with that of others; in the bundle it stands here.
queue= queued=0 queue_classes=
queue_file() {
    case $newline$queue in *"$newline$prefix$2$newline"*) return 0 ;; esac
    printf 'M %s %s\n' "$1" "$2"
    queue=$queue$prefix$2$newline queue_classes="$queue_classes$1 " queued=$((queued + 1))
    [ "$queued" -lt 64 ] || read_queue
}
# Reads the files that wait. Nothing waits where a part of a pipeline begins or ends.
read_queue() {
    [ -n "$queue" ] || return 0
    set -f
    IFS=$newline
    # shellcheck disable=SC2086 # one word a line
    set -- $queue
    unset IFS
    set +f
    classes=$queue_classes
    queue= queued=0 queue_classes=
    printf 'H%s %s\n' "$prefix" "$mark"
    # The name of the last one ends the text of the file before; of one file alone, no name would be printed.
    { trouble=$(head -c 33554433 "$@" "$prefix/dev/null" 2>&1 >&3); status=$?; } 3>&1
    printf '\n%s\n' "$mark"
    is_clear=yes
    if [ -n "$trouble" ] && [ "$status" -le 125 ]; then
        set -f
        IFS=$newline
        # Which file each complaint is about.
        for complaint in $trouble; do
            is_about=
            for item; do
                case $complaint in
                *"$item': "* | *"$item' for reading: "* | *"$item: "*)
                    printf 'N%s\t%s\n' "${item#"$prefix"}" "${complaint##*"$item"}"
                    is_about=yes
                    ;;
                esac
            done
            [ -n "$is_about" ] || is_clear=
        done
        unset IFS
        set +f
    elif [ "$status" != 0 ]; then
        is_clear=
    fi
    if [ -n "$is_clear" ]; then printf 'V\n'; return 0; fi
    printf 'G\n'
    for item; do
        class_alone=${classes%% *} classes=${classes#* }
        contents_alone "$class_alone" "${item#"$prefix"}"
    done
}

# A line that no file holds, because it is random; empty where there is no /dev/urandom.
random=$(tr -dc a-z0-9 2>/dev/null </dev/urandom | head -c 96)
mark= prefix=
if [ "${#random}" = 96 ]; then
    left_of_random=${random#????????????????????????????????}
    mark=${random%"$left_of_random"}
    # head prints the name of each file above its text. A random way to the root in front makes it a line that no
    # file holds either.
    while [ -n "$left_of_random" ]; do
        case $left_of_random in [a-r]*) prefix=$prefix/. ;; *) prefix=$prefix/ ;; esac
        left_of_random=${left_of_random#?}
    done
    case $(head -c 1 "$prefix/dev/null" "$prefix/dev/null" 2>/dev/null) in
    "==> $prefix/dev/null <==$newline${newline}==> $prefix/dev/null <==") ;;
    *) prefix= ;;
    esac
fi

# A file of the kernel with one line is read by the shell itself: three processes less for each of some hundred files.
one_line() {
    { IFS= read -r first && ! IFS= read -r more && [ -z "$more" ]; } 2>/dev/null <"$2" || return 1
    text "$1" "$2"
    printf 'O%s\n\n.\n' "$first"
}

# Something that is not seen may be there, in a directory that this user may not look into.
absent() {
    case $1 in /*) hidden=${1%/*} ;; *) return 0 ;; esac
    while [ -n "$hidden" ] && [ ! -e "$hidden" ]; do hidden=${hidden%/*}; done
    if [ -n "$hidden" ] && [ -d "$hidden" ] && [ ! -x "$hidden" ]; then
        case $1 in *'*'* | *'['*) ;; *) travels "$1" && printf 'X %s\t13\tPermission denied\n' "$1" ;; esac
    fi
}

# What a path is: its kind, its size, for a device its number.
present() {
    for it; do
        [ -e "$it" ] && travels "$it" || continue
        if [ -d "$it" ]; then printf 'D %s\n' "$it"; continue; fi
        if [ ! -f "$it" ] && [ ! -b "$it" ]; then printf 'S %s\tother\t0\t0\t0\n' "$it"; continue; fi
        if [ -f "$it" ]; then
            case $stats in
            "$it$tab"*)
                known=${stats%%"$newline"*}
                printf 'S %s\tregular\t0\t0\t%s\n' "$it" "${known##* }"
                continue
                ;;
            esac
        fi
        # Mode, links, owner, group, then the size or the two numbers of a device.
        ls -lndL -- "$it" 2>/dev/null | {
            read -r mode _ _ _ size minor _ || mode=
            case $mode in
            b*) printf 'S %s\tblock-device\t%s\t%s\t0\n' "$it" "${size%,}" "$minor" ;;
            -*) printf 'S %s\tregular\t0\t0\t%s\n' "$it" "$size" ;;
            esac
        }
    done
}

# A directory whose names may be seen. When its place is a link, that is noted.
dir() {
    for dir_at; do
        [ -d "$dir_at" ] || { [ -e "$dir_at" ] || absent "$dir_at"; continue; }
        travels "$dir_at" || continue
        find_real_dir "$dir_at" || { printf 'X %s\t13\tPermission denied\n' "$dir_at"; continue; }
        [ "$real" = "$dir_at" ] || printf 'L %s\t%s\n' "$dir_at" "$real"
        printf 'D %s\n' "$real"
        [ -r "$dir_at" ] || printf 'X %s\t13\tPermission denied\n' "$dir_at"
    done
}

# More names than this are of no configuration that anybody wrote, and each costs the machine a few processes.
most=@@MOST@@
too_many() { printf 'X %s\t\tmore than %s names in it: not read\n' "$1" "$most"; }

# Files of a class in a directory, by patterns of names: files CLASS DIR PATTERN...
files() {
    class_of=$1 here=$2
    shift 2
    dir "$here"
    [ -d "$here" ] && find_real_dir "$here" || return 0
    place=$real
    # The pattern is to be one, so it stands without quotation marks.
    for names; do of_pattern "$place"/$names; done
}
of_pattern() {
    if [ $# -le "$most" ]; then find_links "$@"; file "$class_of" "$@"; else too_many "$place"; fi
}

# All files below a directory: tree CLASS DIR. Nothing that is far below belongs to a configuration. Names are
# words of the shell from the beginning to the end, so that it does not matter what stands in them.
tree() {
    class_of=$1
    [ -e "$2" ] || { absent "$2"; return 0; }
    dir "$2"
    find_real_dir "$2" || return 0
    start=$real left=$most
    walk "$start"
}
walk() {
    walked=$1
    set -- "$1"/* "$1"/.[!.]* "$1"/..?*
    left=$((left - $#))
    [ "$left" -ge 0 ] || { too_many "$walked"; return 0; }
    find_links "$@"
    for found; do
        if [ ! -h "$found" ]; then
            # A pattern that means nothing stands for itself.
            [ -e "$found" ] || continue
            travels "$found" || continue
        fi
        case $found in
        # Certificates are looked at below; keys are not read at all.
        *.pem | *.crt | *.cer | *.cert | *.so) continue ;;
        *_key | *.key | *.pub)
            if [ ! -d "$found" ]; then
                travels "$found" && printf 'X %s\t\tnot taken: keys are not read\n' "$found"
                continue
            fi
            ;;
        esac
        if [ -d "$found" ] && [ ! -h "$found" ]; then
            dir "$found"
            case $found in
            "$start"/*/*/*/*/*) printf 'X %s\t\tfarther down than is looked\n' "$found" ;;
            *) walk "$found" ;;
            esac
        else
            file "$class_of" "$found"
        fi
    done
}

# Names, and what a link leads to, without a look at the file.
links() {
    for link_at; do
        if [ -h "$link_at" ]; then
            travels "$link_at" && find_real "$link_at" || continue
            printf 'L %s\t%s\n' "$link_at" "$real"
        elif [ -e "$link_at" ]; then
            travels "$link_at" && printf 'F %s\n' "$link_at"
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
    read_queue
    printf 'C %s\n' "$class"
    for word; do printf 'A%s\n' "$word"; done
    answer "$@"
}
answer() {
    if [ -n "$mark" ]; then
        printf 'R%s\n' "$mark"
        { complaint=$($limit "$@" 2>&1 >&3 </dev/null); status=$?; } 3>&1
        printf '\n%s\nO%s\n' "$mark" "$status"
    else
        { complaint=$({ { $limit "$@"; printf '\n%s\n' "$?"; } | sed 's/^/O/' >&3; } 2>&1 </dev/null); } 3>&1
    fi
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
    databases
    certificates
    dependencies
    rpm_packages
    mail
    for target; do look_closer "$target"; done
    read_queue
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
        [ -e "$path/dev" ] && find_real_dir "$path" || continue
        device=$real
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
        while case $controller in */*) ;; *) false ;; esac; do
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
        find_real_dir "$path" || continue
        for name in "$real/sata_spd" "$real/hw_sata_spd_limit"; do file whole "$name"; done
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
    [ -r /proc/self/mountinfo ] || return 0
    # Devices that are mounted by name, and the layers of overlays: kind, source and options stand behind a hyphen.
    while read -r mounted; do
        mounted=${mounted#* - }
        kind=${mounted%% *} mounted=${mounted#* }
        source=${mounted%% *} options=${mounted#* }
        # A device that has no name here, as in a container, is none.
        case $source in /dev/*) ! travels "$source" || { asked_for "$source"; present "$source"; } ;; esac
        case $kind,$options in
        overlay,*upperdir=*)
            upper=${options#*upperdir=}
            upper=${upper%%,*}
            case $upper in *\\*) ;; *) [ ! -d "$upper" ] || dir "$upper" ;; esac
            ;;
        esac
    done </proc/self/mountinfo
}

# The groups that this process is in, up to the root.
groups() {
    [ -r /proc/self/cgroup ] || return 0
    while IFS=: read -r number controllers group; do
        # In a namespace of its own a group may stand above the root: `/..`.
        case $group in /..* | [!/]* | '') continue ;; esac
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
        for name in "$base"/features/*; do [ ! -f "$name" ] || links "$name"; done
        for kind in data metadata system; do
            for name in "$base/allocation/$kind"/*; do
                if [ -d "$name" ]; then dir "$name"; elif [ -f "$name" ]; then links "$name"; fi
            done
        done
    done
}

temperatures() {
    for path in /sys/class/hwmon/*; do
        [ -e "$path/name" ] || continue
        dir "$path"
        find_real_dir "$path" || continue
        monitor=$real
        for name in name temp1_input temp1_max temp1_crit; do file whole "$monitor/$name"; done
        links "$monitor/device"
        ! find_real "$monitor/device" || present "$real"
    done
}

pools() {
    command -v zpool >/dev/null 2>&1 || return 0
    ask named zpool get -Hp -o name,property,value,source all
    ask status zpool status -LP
    ask zdb zdb -C
    cached="
$($limit zdb -C 2>/dev/null | grep '^[^[:space:]].*:$')
"
    $limit zpool list -H -o name 2>/dev/null | while IFS= read -r pool; do
        ask status zpool status -LP "$pool"
        ask properties zpool get -Hp -oname,property,value path,ashift "$pool" all-vdevs
        # This one reads the pool from its devices, which takes seconds.
        case $cached in
        *"
$pool:
"*) ;;
        *) ask zdb zdb -C "$pool" ;;
        esac
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
        travels "$path" && printf 'X %s\t\tnot taken by the collector: run assay there\n' "$path"
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
                # A line break within a word would begin another one; in its place no word is plain.
                tr '\n\000' '\001\n' 2>/dev/null <"$path/cmdline" | sed 's/^/O/'
                printf '.\n'
            fi
            ;;
        esac
    done
    # Most processes use no such library, and there may be thousands: one program looks at all.
    read_queue
    {
        { trouble=$({ grep -l -E '\.so[^ ]* \(deleted\)$' /proc/[0-9]*/maps >&3; } 2>&1); } 3>&1
        [ -z "$trouble" ] || printf '%s\n' "$trouble" | sed 's/^/Y/'
    } | {
        while IFS= read -r path; do
            case $path in
            Y*) printf '%s\n' "$path" ;;
            *)
                contents maps "$path"
                contents group "${path%/maps}/cgroup"
                ;;
            esac
        done
        read_queue
    }
}

# How many dependencies of installed packages nobody is or provides, and the first line of one; no name.
dependencies() {
    [ -f /var/lib/dpkg/status ] && [ -r /var/lib/dpkg/status ] || return 0
    printf 'C counts\n'
    for word in @@DEPENDENCIES@@; do printf 'A%s\n' "$word"; done
    awk '
        function end_package(   n, i, list) {
            if (package != "" && here) {
                there[package] = 1
                n = split(provides, list, ","); for (i = 1; i <= n; i++) there[name_of(list[i])] = 1
                for (i = 1; i <= depends; i++) { text[++all] = depends_on[i]; line[all] = depends_at[i] }
            }
            package = provides = ""; here = depends = 0
        }
        function name_of(one) { sub(/^[ \t]+/, "", one); sub(/[ (:[].*$/, "", one); return one }
        function is_met(group,   n, i, list) {
            if (group !~ /[^ \t]/) return 1
            n = split(group, list, "|")
            for (i = 1; i <= n; i++) if (name_of(list[i]) in there) return 1
            return 0
        }
        /^$/ { end_package(); next }
        /^Package: / { package = $2 }
        /^Status: / { here = $NF ~ /^(installed|unpacked|half-configured|triggers-awaited|triggers-pending)$/ }
        /^Provides: / { provides = substr($0, 11) }
        /^(Pre-)?Depends: / { depends_on[++depends] = substr($0, index($0, ": ") + 2); depends_at[depends] = NR }
        END {
            end_package()
            for (i = 1; i <= all; i++) {
                n = split(text[i], groups, ",")
                for (j = 1; j <= n; j++) if (!is_met(groups[j])) { unmet++; if (!first) first = line[i] }
            }
            if (all) print "O" unmet + 0 " " first + 0
        }' /var/lib/dpkg/status
    printf 'O0\nZ\n'
}

# All packages of rpm and their versions, where rpm is what installs them.
rpm_packages() {
    [ -d /var/lib/rpm ] || [ -d /usr/lib/sysimage/rpm ] || return 0
    ask rpm @@RPM@@
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

# Files that the clusters of PostgreSQL include, and what ALTER SYSTEM wrote where their data lies.
databases() {
    [ -d /etc/postgresql ] || return 0
    read_queue
    {
        files database /etc/postgresql '*/*/postgresql.conf' '*/*/conf.d/*.conf'
        read_queue
    } | awk "$CLEAN" | awk '
        /^F / { dir = substr($0, 3); sub("/[^/]*$", "", dir); next }
        !/^=/ { next }
        {
            text = substr($0, 2); sub(/^[ \t]+/, "", text)
            key = text; sub(/[ \t=].*$/, "", key)
            path = substr(text, length(key) + 1); key = tolower(key)
            sub(/^[ \t]*=?[ \t]*/, "", path); gsub(/["\047]/, "", path); sub(/[ \t]+$/, "", path)
            if (path == "") next
            if (path !~ "^/") path = dir "/" path
            if (key == "data_directory") print "file", path "/postgresql.auto.conf"
            if (key == "include" || key == "include_if_exists") print "file", path
            if (key == "include_dir") print "dir", path
        }' | sort -u | {
        while read -r what path; do
            case $path in *[!A-Za-z0-9/._+@-]* | '' | */../* | [!/]*) continue ;; esac
            case $what,$path in
            file,*/postgresql.auto.conf | file,/etc/postgresql/*.conf) asked_for "$path"; file database "$path" ;;
            dir,/etc/postgresql/*) asked_for "$path"; files database "$path" '*.conf' ;;
            esac
        done
        read_queue
    }
}

# Of each certificate that a program names: its dates, its key and how it is signed, no names.
certificates() {
    dir /etc/letsencrypt/live
    for path in /etc/letsencrypt/live/*; do
        [ -d "$path" ] || continue
        dir "$path"
        certificate "$path/fullchain.pem"
        key_modes "$path/privkey.pem"
    done
    # The files that name certificates are read as they are for the bundle, so that the same names are found.
    for path in /etc/nginx /etc/apache2/*-enabled /etc/httpd /etc/postfix/main.cf /etc/dovecot ''; do
        [ ! -e "$path" ] || break
    done
    [ -n "$path" ] || return 0
    read_queue
    {
        tree nginx /etc/nginx
        for path in /etc/apache2/*-enabled /etc/httpd/conf /etc/httpd/conf.d; do
            [ ! -d "$path" ] || files apache "$path" '*.conf'
        done
        file postfix /etc/postfix/main.cf
        files dovecot /etc/dovecot '*.conf'
        files dovecot /etc/dovecot/conf.d '*.conf'
        read_queue
    } | awk "$CLEAN" | awk '
        /^F / { of = substr($0, 3); next }
        !/^=/ { next }
        { text = substr($0, 2); gsub(/["\047]/, " ", text); n = split(text, said, /[;{}]/) }
        { for (i = 1; i <= n; i++) directive(said[i]) }
        function directive(text,   word, words, at, key, j) {
            at = index(text, "="); words = split(text, word, " ")
            key = at ? substr(text, 1, at - 1) : word[1]; gsub(/[ \t]/, "", key); key = tolower(key)
            if (key == "ssl_certificate") named("c", word[2], "/etc/nginx/")
            else if (key == "ssl_certificate_key") named("k", word[2], "/etc/nginx/")
            else if (key ~ /^sslcertificate(chain)?file$/) named("c", word[2], "")
            else if (key == "sslcertificatekeyfile") named("k", word[2], "")
            # A value of Postfix goes on in lines that begin with a blank.
            if (at) last = key
            else if (of == "/etc/postfix/main.cf" && text ~ /^[ \t]/) key = last
            else return
            text = substr(text, at + 1); sub(/^[ \t]*<+/, "", text); words = split(text, word, /[ ,\t]+/)
            for (j = 1; j <= words; j++) {
                if (word[j] == "") continue
                if (key ~ /^(smtpd_tls_cert_file|smtpd_tls_chain_files)$/) named("c", word[j], "/etc/postfix/")
                if (key ~ /^(smtpd_tls_key_file|smtpd_tls_chain_files)$/) named("k", word[j], "/etc/postfix/")
                if (key ~ /^(ssl_cert|ssl_server_cert_file)$/) named("c", word[j], "")
                if (key ~ /^(ssl_key|ssl_server_key_file)$/) named("k", word[j], "")
            }
        }
        function named(kind, path, dir) { print kind, (path ~ /^\// ? path : dir path) }' | sort -u | {
        # Certificates come first, because of their letter.
        keys=
        while read -r kind path; do
            case $path in *[!A-Za-z0-9/._+*@-]* | '' | [!/]*) continue ;; esac
            case $kind in c) certificate "$path" ;; k) keys=$keys$path$newline ;; esac
        done
        set -f
        IFS=$newline
        # shellcheck disable=SC2086 # one word a line
        set -- $keys
        unset IFS
        set +f
        while [ $# -gt 8 ]; do
            key_modes "$1" "$2" "$3" "$4" "$5" "$6" "$7" "$8"
            shift 8
        done
        key_modes "$@"
    }
}
# A place that a configuration names: where nothing is, nothing is missing.
asked_for() {
    case $1 in *[][*?]*) ;; *) printf 'Q %s\n' "$1" ;; esac
}
certificate() {
    travels "$1" || return 0
    asked_for "$1"
    place=$1
    if [ -h "$place" ]; then
        find_real "$place" || return 0
        place=$real
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
key_modes() {
    find_modes "$@"
    for key_at; do key_mode "$key_at"; done
}
key_mode() {
    travels "$1" || return 0
    asked_for "$1"
    [ -e "$1" ] || [ ! -h "$1" ] || { links "$1"; return 0; }
    [ -e "$1" ] || { absent "$1"; return 0; }
    present "$1"
    mode_of "$1"
    find_real "$1" || return 0
    key_real=$real
    # Also where a directory above it is a link.
    if [ "$key_real" != "$1" ]; then
        printf 'L %s\t%s\n' "$1" "$key_real"
        present "$key_real"
        take_stat "$key_real"
    fi
    while case $key_real in /?*) ;; *) false ;; esac; do
        key_real=${key_real%/*}
        key_real=${key_real:-/}
        mode_of "$key_real"
    done
}
mode_of() {
    printf 'C digits\n'
    for word in @@MODE_OF@@ "$1"; do printf 'A%s\n' "$word"; done
    if take_stat "$1"; then printf 'O%s\nO\nO0\nZ\n' "${known%% *}"; else answer stat -L -c %a "$1"; fi
}

# Asks once for the permissions and sizes that key_mode takes, in the same order: find_modes KEY...
stats=
find_modes() {
    asked_modes=
    # Here, and in key_mode.
    find_links "$@" "$@"
    for key_at; do
        fits "$key_at" && [ -e "$key_at" ] && find_real "$key_at" || continue
        asked_modes=$asked_modes$key_at$newline
        [ "$real" = "$key_at" ] || asked_modes=$asked_modes$real$newline
        while case $real in /?*) ;; *) false ;; esac; do
            real=${real%/*}
            real=${real:-/}
            asked_modes=$asked_modes$real$newline
        done
    done
    set -f
    IFS=$newline
    # shellcheck disable=SC2086 # one word a line
    set -- $asked_modes
    unset IFS
    set +f
    stats=
    [ $# = 0 ] || stats=$($limit stat -L -c "%n$tab%a %s" "$@" 2>/dev/null </dev/null)$newline
}
take_stat() {
    case $stats in "$1$tab"*) ;; *) return 1 ;; esac
    known=${stats%%"$newline"*} stats=${stats#*"$newline"}
    known=${known#"$1$tab"}
}

# A path that was named on the command line: what lies under it.
look_closer() {
    case $1 in /*) ;; *) return 0 ;; esac
    [ -e "$1" ] && travels "$1" || return 0
    links "$1"
    find_real "$1" || return 0
    place=$real
    [ "$place" = "$1" ] || printf 'L %s\t%s\n' "$1" "$place"
    present "$1" "$place"
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
    btrfs) ask btrfs btrfs property get -t inode "$place" ;;
    xfs) ask xfs xfs_info "$point" ;;
    ext2 | ext3 | ext4)
        ! find_real "$source" || ask ext4 dumpe2fs -h "/dev/${real##*/}"
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
    complete "$@" | awk "$CLEAN" | awk -v VERSION='@@VERSION@@' "$PACK" | tr '\002' '\000' | $pack
}

# All that is asked for, and then what the shell and its tools complained about meanwhile: what they failed at
# may be missing. Without the mark at the end, the archive says that it is not whole.
complete() {
    { faults=$({ { collect "$@"; printf '!\n'; } >&3; } 2>&1 | sed -n '1,20s/^/W/p'); } 3>&1
    [ -z "$faults" ] || printf '%s\n' "$faults"
}

# ---- its own end --------------------------------------------------------------------------------

# The processes that descend from one. The name of a process may hold anything, so its parent is looked for
# behind the last parenthesis.
below() {
    printf '%s\n' /proc/[0-9]* | awk -v root="$1" '
        {
            file = $0 "/stat"; text = ""
            for (i = 0; i < 20 && (getline line < file) > 0; i++) text = text line
            close(file)
            sub(/^.*\) /, "", text)
            if (split(text, word, " ") > 1) parent[substr($0, 7)] = word[2]
        }
        END {
            for (pid in parent) {
                at = pid
                for (i = 0; i < 64 && at != "" && at != root; i++) at = (at in parent) ? parent[at] : ""
                if (at == root && pid != root) print pid
            }
        }'
}
# The ssh server above this process, if there is one.
server() {
    above=$$
    while [ "${above:-0}" -gt 1 ]; do
        read -r name 2>/dev/null <"/proc/$above/comm" || return 0
        case $name in sshd* | dropbear*) printf '%s\n' "$above"; return 0 ;; esac
        above=$(awk '{ text = text $0 } END { sub(/^.*\) /, "", text); split(text, word, " "); print word[2] }' \
            "/proc/$above/stat" 2>/dev/null)
    done
}
# Waits until time is up, or until nobody is there any more who asked.
guard() {
    left=$assay_deadline
    while [ "$left" -gt 0 ]; do
        sleep 1
        left=$((left - 1))
        kill -0 "$$" 2>/dev/null || break
        [ -z "$link" ] || [ -d "/proc/$link" ] || break
    done
    end_work
}
# All are stopped first, so that none of them ends, or starts another one, before its turn comes.
end_work() {
    # A signal may come between the start of the work and the line that notes its number.
    work=${work:-${!-}}
    [ -n "$work" ] || return 0
    # shellcheck disable=SC2046 # numbers
    {
        kill -STOP "$work" $(below "$work")
        kill -9 $(below "$work")
        kill -9 $(below "$work")
        kill -9 "$work"
    } 2>/dev/null
}

# The traps and the search for the ssh server come first: a signal, or the end of the server, may be early.
work=
guard=
trap 'end_work; kill -9 $guard 2>/dev/null; exit 1' HUP INT TERM PIPE
link=$(server)
main "$@"@@PATHS@@ </dev/null &
work=$!
guard </dev/null >/dev/null 2>&1 &
guard=$!
wait "$work"
status=$?
{
    kill -9 "$guard"
    wait "$guard"
} 2>/dev/null
[ "$status" = 0 ] || printf 'assay-collector: ended before it was done, at the latest after %s s\n' "$assay_deadline" >&2
exit "$status"
