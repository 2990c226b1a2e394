import { writtenPathProblem } from '../../../contract/kit/file-paths.ts'
import type { FileChange } from '../../../domain/session-data/files/file-change.ts'
import { Overlay } from '../../../domain/tools/capabilities/virtual-bash/overlay.ts'
import { createShell } from '../../../domain/tools/capabilities/virtual-bash/shell.ts'
import { createFakeFiles, type FakeFiles } from './fake-files.ts'

const TEXTS = {
  '/a.txt': 'one\ntwo\nthree\n',
  '/b.json': '{"x": [1, 2]}',
  '/d': null,
  '/d/e': null,
  '/d/e/deep.md': '# Deep\n',
  '/d/ü.txt': 'für\r\n',
  '/empty': null,
  '/readonly.txt': 'fixed\n',
}
type Files = Record<string, string | Uint8Array | null>

/** Runs a command over files, and commits what it changes. */
async function run(command: string, files = createFakeFiles(TEXTS), maxBytes = 10_000) {
  const overlay = new Overlay({
    entries: JSON.parse(await files.listTree()),
    maxFileBytes: 1000,
    maxBytes,
    problemOf: writtenPathProblem,
    fetch: async ({ path }) => (await files.read(path))?.bytes ?? Buffer.from('none'),
  })
  const { stdout, stderr, exitCode } = await createShell(overlay, 10_000).exec(command, { rawScript: true })
  const changes = overlay.changes()
  if (changes.length > 0) await files.change(changes)
  return { stdout, stderr, exitCode, changes, files }
}

/** Returns what differs from TEXTS; undefined for what is gone. */
function differences(files: FakeFiles): Files {
  const now = files.texts()
  const paths = [...new Set([...Object.keys(TEXTS), ...Object.keys(now)])]
  return Object.fromEntries(
    paths.filter((path) => now[path] !== (TEXTS as Files)[path]).map((path) => [path, now[path]]),
  ) as Files
}

const GONE = undefined as never

describe('bash over the files of a session', () => {
  it.each<[command: string, stdout: string, differences?: Files]>([
    ['cat a.txt | tac | head -n 1', 'three\n'],
    ['cat < a.txt | wc -l | tr -d " "', '3\n'],
    ['cd d; pwd; ls; cat ü.txt', '/d\ne\nü.txt\nfür\r\n'],
    ['find . -name "*.md" -o -type d -name e', './d/e\n./d/e/deep.md\n'],
    ['echo d/*; shopt -s globstar; echo **/*.md', 'd/e d/ü.txt\nd/e/deep.md\n'],
    ['grep -rn -i deep d', 'd/e/deep.md:1:# Deep\n'],
    ['jq -c .x b.json', '[1,2]\n'],
    ['awk "NR==2" a.txt; sort a.txt | uniq -c | wc -l', 'two\n3\n'],
    ['x=$(head -n 1 a.txt); y=$(basename d/a.txt .txt); echo "$x $y" $((1 + 2 ** 3))', 'one a 9\n'],
    ['diff <(sort a.txt) <(cat a.txt) > /dev/null; echo $?', '1\n'],
    ['stat -c %s d/ü.txt; [ -d d -a ! -e none ] && echo yes', '6\nyes\n'],
    ['for i in 1 2; do echo $i; done > n; cat n', '1\n2\n', { '/n': '1\n2\n' }],
    ['echo x >> a.txt; echo y >> a.txt', '', { '/a.txt': 'one\ntwo\nthree\nx\ny\n' }],
    ['sed -i s/two/2/ a.txt', '', { '/a.txt': 'one\n2\nthree\n' }],
    ['cat <<EOF > h\n  $HOME\n\tx\nEOF', '', { '/h': '  /\n\tx\n' }],
    ['sort a.txt > t && mv t a.txt', '', { '/a.txt': 'one\nthree\ntwo\n' }],
    ['sort a.txt > /tmp/t && mv /tmp/t a.txt', '', { '/a.txt': 'one\nthree\ntwo\n' }],
    ['mv a.txt b.json', '', { '/a.txt': GONE, '/b.json': TEXTS['/a.txt'] }],
    ['mv a.txt t; mv b.json a.txt; mv t b.json', '', { '/a.txt': TEXTS['/b.json'], '/b.json': TEXTS['/a.txt'] }],
    [
      'mv d empty; echo x >> empty/d/ü.txt; touch empty/d/new',
      '',
      {
        ...{ '/d': GONE, '/d/e': GONE, '/d/e/deep.md': GONE, '/d/ü.txt': GONE, '/empty/d': null, '/empty/d/e': null },
        ...{ '/empty/d/e/deep.md': '# Deep\n', '/empty/d/ü.txt': 'für\r\nx\n', '/empty/d/new': '' },
      },
    ],
    ['rm -rf d', '', { '/d': GONE, '/d/e': GONE, '/d/e/deep.md': GONE, '/d/ü.txt': GONE }],
    ['rm -r empty && echo x > empty', '', { '/empty': 'x\n' }],
    ['rm a.txt && mkdir a.txt && touch a.txt/x', '', { '/a.txt': null, '/a.txt/x': '' }],
    ['rmdir empty && cp a.txt empty', '', { '/empty': TEXTS['/a.txt'] }],
    [
      'mkdir -p n/m && cp -r d n/m',
      '',
      {
        ...{ '/n': null, '/n/m': null, '/n/m/d': null, '/n/m/d/e': null },
        ...{ '/n/m/d/e/deep.md': '# Deep\n', '/n/m/d/ü.txt': 'für\r\n' },
      },
    ],
    [
      'tar czf /tmp/x.tgz d && tar xzf /tmp/x.tgz -C empty; ls empty/d',
      'e\nü.txt\n',
      {
        ...{ '/empty/d': null, '/empty/d/e': null, '/empty/d/e/deep.md': '# Deep\n', '/empty/d/ü.txt': 'für\r\n' },
      },
    ],
    ['mkdir n; rmdir n; touch n; rm n; chmod 600 a.txt; touch a.txt; true > /dev/null', ''],
    [
      'printf "echo got \\$1" > run; chmod +x run; ./run it; bash run two',
      'got it\ngot two\n',
      { '/run': 'echo got $1' },
    ],
    ['mv readonly.txt r', '', { '/readonly.txt': GONE, '/r': 'fixed\n' }],
    ['echo x > a.txt; rm a.txt', '', { '/a.txt': GONE }],
    ['export A=1; f() { echo $((A + $1)); }; f 2; f 3 | { read x; echo $x; }; (A=9); echo $A', '3\n4\n1\n'],
    ['set -e; false; echo never', ''],
    ['exec 3> /tmp/f; echo hi >&3; cat /tmp/f; cat /dev/null; echo x > /dev/null', 'hi\n'],
    ['yq -o json .x b.json | tr -d " \\n"; xan headers <(printf "q,r\\n1,2\\n") | tail -n 1', '[1,2]1   r\n'],
    ['seq 1 3 | xargs -n 1 echo | paste -s -d , -; printf "%s\\n" b a | sort', '1,2,3\na\nb\n'],
    ['split -l 1 a.txt d/p; cat d/paa', 'one\n', { '/d/paa': 'one\n', '/d/pab': 'two\n', '/d/pac': 'three\n' }],
  ])('%s', async (command, stdout, expected = {}) => {
    const ran = await run(command)
    expect(ran.stderr).toBe('')
    expect(ran.stdout).toBe(stdout)
    expect(differences(ran.files)).toEqual(expected)
  })

  it.each<[command: string, problem: RegExp]>([
    ['cp a.txt readonly.txt', /EACCES: the file is read-only/],
    ['mv a.txt readonly.txt', /EACCES: the file is read-only/],
    ['mkdir _x', /EINVAL: the path must not have a segment that begins with _/],
    [`mkdir ${'x'.repeat(1025)}`, /ENAMETOOLONG: the path must be at most 1024 bytes/],
    [`mkdir -p ${'d/'.repeat(65)} || rm -r d/d`, /ENAMETOOLONG: the path must have at most 64 segments/],
    ['ln -s a.txt l', /not allowed/],
    ['ln a.txt l', /not allowed/],
    ['rmdir d', /not empty/i],
    ['mv d d/e', /itself/],
    ['cat none', /No such file/],
    ['mkdir a.txt/x', /not a directory|no such file/i],
    ['cp -r d a.txt', /already exists/],
    ['rm -r /tmp', /EBUSY|mount point/],
    ['printf %2000d 1 > /tmp/x; cp /tmp/x big; rm big', /EFBIG: a file has at most 1000 bytes/],
  ])('refuses: %s', async (command, problem) => {
    const ran = await run(command)
    expect(ran.stderr).toMatch(problem)
    expect(differences(ran.files)).toEqual({})
  })

  it.each([
    'mkdir skills/readonly/new',
    'touch skills/readonly/new',
    'cp a.txt skills/readonly/a.txt',
    'mv a.txt skills/readonly/a.txt',
    'rm skills/readonly/SKILL.md',
    'rmdir skills/readonly/empty',
    'rm -r skills',
    'rm -r skills/readonly',
    'mv skills s',
    'mv skills/readonly s',
    'mv skills/readonly/SKILL.md s',
    'mv skills/readonly/SKILL.md a.txt',
    'mv skills/readonly/SKILL.md skills/own.txt',
    'mv skills/readonly/empty .',
  ])('leaves the directory of a skill: %s', async (command) => {
    const own = { '/a.txt': 'a', '/empty': null, '/skills': null, '/skills/own.txt': 'own' }
    const texts = { ...own, '/skills/readonly': null }
    const files = createFakeFiles({ ...texts, '/skills/readonly/SKILL.md': 'x', '/skills/readonly/empty': null })
    for (const [path, entry] of files.entries) entry.isReadonly = path.startsWith('/skills/readonly')
    const { stderr, changes } = await run(command, files)
    expect(stderr).toMatch(/EACCES: the files of a skill are read-only/)
    expect(changes).toEqual([])
  })

  it.each([
    ['mv a.txt _old', /EINVAL: the path must not have a segment that begins with _/],
    [`mv -f a.txt ${'x'.repeat(1025)}`, /ENAMETOOLONG: the path must be at most 1024 bytes/],
    [`mv ${'s'.repeat(10)} ${'t/'.repeat(4)}`, /ENAMETOOLONG: the path must be at most 1024 bytes/],
  ])('removes nothing for a move that it refuses: %s', async (command, problem) => {
    const texts = { '/a.txt': 'a', '/_old': 'old', [`/${'x'.repeat(1025)}`]: 'long', '/t': null, '/t/t': null }
    const source = { '/ssssssssss': null, [`/ssssssssss/${'y'.repeat(1010)}`]: 'y' }
    const target = { '/t/t/t': null, '/t/t/t/t': null, '/t/t/t/t/ssssssssss': null }
    const files = createFakeFiles({ ...texts, ...source, ...target })
    const { stderr, changes } = await run(command, files)
    expect(stderr).toMatch(problem)
    expect(changes).toEqual([])
  })

  it('copies what it can of a directory, and names the rest', async () => {
    const files = createFakeFiles({
      ...{ '/s': null, '/s/__init__.py': 'i', '/s/a': null, '/s/a/_b': 'b', '/s/a/c': 'c', '/s/_d': null },
      ...{ '/s/_d/e': 'e', '/s/z': 'z' },
    })
    const { stderr, exitCode } = await run('cp -r s t', files)
    expect(exitCode).toBe(1)
    for (const path of ['/t/__init__.py', '/t/a/_b', '/t/_d']) {
      expect(stderr).toContain(`EINVAL: the path must not have a segment that begins with _, '${path}'`)
    }
    expect(Object.keys(files.texts()).filter((path) => path.startsWith('/t'))).toEqual(['/t', '/t/a', '/t/a/c', '/t/z'])
    const many = createFakeFiles({
      '/s': null,
      ...Object.fromEntries(Array.from({ length: 30 }, (_, at) => [`/s/_${at}`, 'x'])),
    })
    expect((await run('cp -r s t', many)).stderr).toMatch(/; 10 more were not copied\n$/)
  })

  it('ends at a redirection that cannot be written', async () => {
    for (const target of ['readonly.txt', '_x', 'd/_y/z']) {
      await expect(run(`echo x; echo more >> ${target}; echo y`)).rejects.toThrow(/EACCES|EINVAL/)
    }
  })

  it('writes bytes as they are, and says whether they are text', async () => {
    const files = createFakeFiles({ '/in': Buffer.from([0, 0xff, 0xfe, 10, 0x80]) })
    await run('cat in > out; cp in copy; base64 in | base64 -d > decoded; cat in in > twice; echo text > text', files)
    const hex = [...files.entries].map(([path, { bytes, isBase64 }]) => [path, bytes.toString('hex'), isBase64])
    expect(hex.slice(1)).toEqual([
      ['/out', '00fffe0a80', true],
      ['/copy', '00fffe0a80', true],
      ['/decoded', '00fffe0a80', true],
      ['/twice', '00fffe0a8000fffe0a80', true],
      ['/text', '746578740a', false],
    ])
  })

  it('names the content that it started from, for each file that it replaces or deletes', async () => {
    const { changes, files } = await run(
      'echo x > a.txt; rm -r d; mv b.json c.json; echo y >> c.json; mkdir n; touch n/f',
    )
    const shown = changes.map(({ do: what, ...change }: FileChange) => [
      what,
      'path' in change ? change.path : `${change.from} ${change.to}`,
      change.was === null ? 'none' : change.was?.replace(/\d+/, ''),
    ])
    expect(shown).toEqual([
      ['delete', '/d/e/deep.md', 'content '],
      ['delete', '/d/e', 'none'],
      ['delete', '/d/ü.txt', 'content '],
      ['delete', '/d', 'none'],
      ['move', '/b.json /c.json', undefined],
      ['make_directory', '/n', undefined],
      ['write', '/a.txt', 'content '],
      ['write', '/c.json', 'content '],
      ['write', '/n/f', 'none'],
    ])
    expect(files.texts()).toMatchObject({ '/a.txt': 'x\n', '/c.json': '{"x": [1, 2]}y\n', '/n/f': '' })
  })

  it('reads more than it may keep, and writes no more than that', async () => {
    const texts = Object.fromEntries(Array.from({ length: 30 }, (_, n) => [`/f${n}`, 'x'.repeat(999)]))
    const ran = await run(
      'cat f* | wc -c; for i in 1 2 3; do cat f1 > copy$i; done; cp f1 g; rm f1',
      createFakeFiles(texts),
      4000,
    )
    expect(ran).toMatchObject({ stdout: '29970\n', stderr: '', exitCode: 0 })
    const tooMuch = await run('for i in 1 2 3 4 5; do cat f1 > copy$i; done', createFakeFiles(texts), 4000)
    expect(tooMuch).toMatchObject({ stderr: expect.stringMatching(/ENOSPC/), exitCode: 1 })
  })

  it('goes on refusing after a refused write', async () => {
    const { changes, stderr } = await run(
      'for i in 1 2 3; do cp f c$i; done; cp s c4; for i in $(seq 30); do cp f c4; cp f n$i; done',
      createFakeFiles({ '/f': 'x'.repeat(999), '/s': 'x'.repeat(990) }),
      3990,
    )
    const sizes = changes.map((change) => (change.do === 'write' ? change.bytes.length : 0))
    expect(sizes.filter(Boolean)).toEqual([999, 999, 999, 990])
    expect(stderr).toMatch(/ENOSPC/)
  })

  it('names the content of what it has only read, when it changes something', async () => {
    const files = createFakeFiles({ ...TEXTS, '/nothing': '' })
    expect((await run('cat a.txt nothing', files)).changes).toEqual([])
    const { changes } = await run('cat a.txt nothing b.json > n; mv a.txt m; echo x > b.json', files)
    expect(changes.map((change) => [change.do, 'path' in change ? change.path : change.to])).toEqual([
      ['check', '/a.txt'],
      ['check', '/nothing'],
      ['move', '/m'],
      ['write', '/b.json'],
      ['write', '/n'],
    ])
  })

  it('keeps nothing when it would change too many files and directories, whatever the command makes of that', async () => {
    await expect(run('mkdir $(seq 1 20001); true')).rejects.toThrow(/at most 20000 files and directories/)
    const many = createFakeFiles(Object.fromEntries(Array.from({ length: 20_001 }, (_, n) => [`/d/${n}`, ''])))
    many.entries.set('/d', { bytes: Buffer.alloc(0), contentId: null, isReadonly: false, isBase64: false })
    await expect(run('rm -rf d; true', many)).rejects.toThrow(/at most 20000 files and directories/)
    await expect(run('cd d; tee * < /dev/null; true', many)).rejects.toThrow(/at most 20000/)
  })

  it('names the beginning of a long path', async () => {
    const { stderr } = await run(`mkdir ${'x'.repeat(900_000)}`)
    expect(stderr).toMatch(/ENAMETOOLONG.*xxx/)
    expect(stderr.length).toBeLessThan(1_000_000)
  })

  it('shows no directory of its own at the root, where they can still be named', async () => {
    const { stdout } = await run('find . -type f | wc -l; ls; echo *; cd /tmp; echo hi > _x; cat /tmp/_x; ls /tmp')
    expect(stdout).toBe(`5\na.txt\nb.json\nd\nempty\nreadonly.txt\na.txt b.json d empty readonly.txt\nhi\n_x\n`)
  })
})
