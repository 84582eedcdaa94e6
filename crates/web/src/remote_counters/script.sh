{
set -u
LC_ALL=C
export LC_ALL

# The first words of a small file, and since when the machine is up.
awk_common='
  function first(file,  line) { line = ""; if ((getline line < file) < 0) line = ""; close(file); return line }
  function up(  word) { split(first("/proc/uptime"), word, " "); print "up " word[1] }
  function machine(  line, word, name, i, n, cpus) {
    while ((getline line < "/proc/stat") > 0 && line ~ /^cpu/) if (line ~ /^cpu /) print line; else cpus++
    close("/proc/stat")
    print "cpus " cpus + 0
    while ((getline line < "/proc/net/netstat") > 0) {
      if (line !~ /^TcpExt:/) continue
      n = split(line, word, " ")
      for (i = 2; i <= n; i++) {
        if (name[i] == "ListenOverflows") print "overflows " word[i]
        if (name[i] == "ListenDrops") print "drops " word[i]
        if (!(i in name)) name[i] = word[i]
      }
    }
    close("/proc/net/netstat")
  }'

# Who holds a socket that listens on a port, in hexadecimal digits; 0A is TCP_LISTEN. Without -q a name with a
# line break in it could look like another line.
listening() {
  inodes=$(cat /proc/net/tcp /proc/net/tcp6 2>/dev/null |
    awk -v port="$1" '$4 == "0A" && substr($2, length($2) - 4) == ":" port { printf " %s ", $10 }') ||
    { echo failed; return; }
  [ -n "$inodes" ] || return
  echo sockets
  hide=
  ls -q / >/dev/null 2>&1 && hide=q
  ls -ln$hide /proc/[0-9]*/fd 2>/dev/null | awk -v wanted="$inodes" '
    /^\/proc\/[0-9]+\/fd:$/ { split($0, part, "/"); pid = part[3]; next }
    pid != "" && NF == 11 && $10 == "->" && $11 ~ /^socket:\[[0-9]+\]$/ {
      if (index(wanted, " " substr($11, 9, length($11) - 9) " ")) { print "holds " pid; pid = "" }
    }' || echo failed
}

# Processes with all that descend from them. The name of one may hold anything, so its parent is looked for
# behind the last parenthesis.
tree() {
  printf '%s\n' /proc/[0-9]* | awk -v roots=" $1 " '
    {
      file = $0 "/stat"
      text = ""
      for (i = 0; i < 20 && (getline line < file) > 0; i++) text = text line
      close(file)
      sub(/.*\) /, "", text)
      split(text, word, " ")
      parent[substr($0, 7)] = word[2]
    }
    END {
      for (pid in parent) {
        at = pid
        for (i = 0; i < 64 && at != "" && at != 0; i++) {
          if (index(roots, " " at " ")) { print pid; break }
          at = (at in parent) ? parent[at] : ""
        }
      }
    }'
}

# CPU time of each thread: on a CPU and waiting for one, in nanoseconds; in ticks where the kernel counts no better.
processes() {
  for pid in $(tree "$1"); do
    printf '%s\n' /proc/"$pid"/task/[0-9]*
  done | awk "$awk_common"'
    { task[NR] = $0; split($0, part, "/"); if (NR == 1 || part[3] + 0 < oldest + 0) oldest = part[3] }
    END {
      up()
      machine()
      for (i = 1; i <= NR; i++) {
        split(task[i], part, "/")
        if (split(first(task[i] "/schedstat"), time, " ") >= 2 && time[1] != "0") {
          print "t " part[3] " " part[5] " " time[1] " " time[2]
          continue
        }
        text = first(task[i] "/stat")
        sub(/.*\) /, "", text)
        if (split(text, time, " ") >= 13) print "ticks " part[3] " " part[5] " " time[12] + time[13]
      }
      if (NR > 0) print "name " first("/proc/" oldest "/comm")
      up()
    }'
}

group() {
  GROUP=$1 awk "$awk_common"'
    BEGIN {
      up()
      machine()
      file = ENVIRON["GROUP"] "/cpu.stat"
      while ((getline line < file) > 0) if (split(line, word, " ") == 2 && word[1] == "usage_usec") print "usage " word[2]
      up()
    }' </dev/null
}

printf 'assay-counters 1 %s %s\n' "$(id -u)" "$(cat /proc/sys/kernel/random/boot_id 2>/dev/null)"
while read -r what number rest; do
  printf 'begin %s\n' "$number"
  case $what in
    listening) listening "$rest" ;;
    processes) processes "$rest" ;;
    group) group "$rest" ;;
  esac
  printf 'end %s\n' "$number"
done
exit 0
}
