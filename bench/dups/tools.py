"""The programs that bench/dups/run measures: how each is started, and how its groups are read."""
import json, os, re, shutil, sqlite3

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))

def find(name):
    """Path of a program: in PEERS, in this checkout, or in PATH."""
    for folder in (os.environ.get('PEERS', ''), os.path.join(ROOT, 'target', 'release')):
        path = os.path.join(folder, name)
        if folder and os.access(path, os.X_OK):
            return path
    return shutil.which(name)

def blocks(out):
    """fdupes' format: paths, an empty line after each group."""
    return [part.strip(b'\n').split(b'\n') for part in out.split(b'\n\n') if part.strip(b'\n')]

def fclones(out):
    """fdupes' format, with names in STFU-8: a backslash is doubled, other bytes stand as \\xNN, \\n, \\t, \\r."""
    short = {b'\\': b'\\', b'n': b'\n', b't': b'\t', b'r': b'\r'}
    plain = lambda found: short.get(found[1]) or bytes.fromhex(found[1][1:].decode())
    return [[re.sub(rb'\\([\\ntr]|x[0-9A-Fa-f]{2})', plain, path) for path in group] for group in blocks(out)]

def assay(out):
    return [[os.fsencode(path) for path in group['files']] for group in json.loads(out)['groups']]

def rdfind(out):
    """`DUPTYPE id depth size device inode priority name`; the copies have the negative id."""
    groups = {}
    for line in out.splitlines():
        if not line.startswith(b'#'):
            fields = line.split(b' ', 7)
            groups.setdefault(abs(int(fields[1])), []).append(fields[7])
    return list(groups.values())

def czkawka(out):
    """JSON: size -> list of groups -> files."""
    return [[os.fsencode(file['path']) for file in group] for groups in json.loads(out).values() for group in groups]

def ddh(out):
    """JSON, one object with `file_paths` for each content, also for those that only one file has."""
    found = (entry['file_paths'] for entry in json.loads(out))
    return [[os.fsencode(path) for path in paths] for paths in found if len(paths) > 1]

def dupd(out):
    """SQLite, paths of a group with the byte 0x1C between them; names that have it are left out."""
    database = sqlite3.connect(':memory:')
    database.deserialize(out)
    return [paths.split(b'\x1c') for (paths,) in database.execute('SELECT CAST(paths AS BLOB) FROM duplicates')]

class Tool:
    """`arguments`: before the folder; OUT stands for a file that the groups go to, else they are
    read from standard output; `read` makes lists of paths of them; `own`: not a peer."""
    def __init__(self, binary, arguments, read=blocks, own=False):
        self.binary, self.arguments, self.read, self.own = binary, arguments, read, own

    def command(self, out, folder):
        if self.binary == 'find':
            return [find('find'), folder, '-printf', '%s %i %T@ %C@\n']
        return [find(self.binary), *(out if one == 'OUT' else one for one in self.arguments), folder]

    def to_file(self):
        return 'OUT' in self.arguments

def tools(index):
    scan = ['dups', 'scan', '--json']
    return {
        'assay': Tool('assay', ['dups', 'scan', '--format', 'fdupes', '--no-index'], blocks, True),
        'assay json': Tool('assay', [*scan, '--no-index'], assay, True),
        'assay blake3': Tool('assay', [*scan, '--no-index', '--hash', 'blake3'], assay, True),
        'assay walk': Tool('assay', [*scan, '--no-index', '--min-size', '1000000T'], None, True),
        'assay first': Tool('assay', [*scan, '--index', index], assay, True),
        'assay again': Tool('assay', [*scan, '--index', index], assay, True),
        'assay summary': Tool('assay', ['dups', 'scan', '--index', index], None, True),
        'yadf': Tool('yadf', ['--format', 'fdupes']),
        # Virtual disks often claim to rotate; then it would read with one thread.
        'fclones': Tool('fclones', ['group', '--hidden', '--no-ignore', '-s', '1', '-f', 'fdupes',
                                    '--threads', f'hdd:{4 * os.cpu_count()}'], fclones),
        'czkawka': Tool('czkawka_cli', ['dup', '-m', '1', '--disable-cache', '-N', '-C', 'OUT', '-d'], czkawka),
        'ddh': Tool('ddh', ['-v', 'quiet', '-f', 'json', '-o', 'OUT', '-d'], ddh),
        'jdupes': Tool('jdupes', ['-r', '-q']),
        'rdfind': Tool('rdfind', ['-dryrun', 'true', '-outputname', 'OUT'], rdfind),
        'fdupes': Tool('fdupes', ['-r', '-q']),
        'rmlint': Tool('rmlint', ['-T', 'df', '--hidden', '-o', 'fdupes:stdout']),
        # Without what it remembers of earlier scans in the home folder, as all others here.
        'dupd': Tool('dupd', ['scan', '-q', '--hidden', '--x-no-cache', '--db', 'OUT', '--path'], dupd),
        'find': Tool('find', [], None, True),
    }
