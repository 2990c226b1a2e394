import type { ChildProcess } from 'node:child_process'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { setTimeout as sleep } from 'node:timers/promises'
import { conflict } from '../../../domain/kit/errors.ts'
import type { FileChange } from '../../../domain/session-data/files/file-change.ts'
import { createBashProcesses, fittingProcesses } from '../../../domain/tools/capabilities/virtual-bash/processes.ts'
import {
  CommandStopped,
  checkChanges,
  runCommand,
} from '../../../domain/tools/capabilities/virtual-bash/run-command.ts'
import { watchEventLoop } from '../../support/event-loop.ts'
import { createFakeFiles } from './fake-files.ts'
import { runTool } from './run-tool.ts'

const TEXTS = { '/a.txt': 'one\ntwo\n', '/tmp': null, '/tmp/x': 'not seen\n' }

const bash = (command: string, files = createFakeFiles(TEXTS), more: object = {}) =>
  runTool('bash', { command, timeout_secs: 10 }, { files, ...more })

describe('bash', () => {
  it('gives back what a command says, and keeps what it changes, in one change', async () => {
    const files = createFakeFiles(TEXTS)
    const command = 'cat a.txt; echo three >> a.txt; ls /tmp; echo x > /tmp/y; echo oops >&2; cp a.txt b.txt; exit 3'
    expect(await bash(command, files)).toEqual({ exit_code: 3, stdout: 'one\ntwo\n', stderr: 'oops\n' })
    expect(files.changes).toHaveLength(1)
    const kept = { '/a.txt': 'one\ntwo\nthree\n', '/b.txt': 'one\ntwo\nthree\n' }
    expect(files.texts()).toEqual({ ...TEXTS, ...kept })
    expect(await bash('wc -l < a.txt | tr -d " "', files)).toMatchObject({ stdout: '3\n' })
    expect(files.changes).toHaveLength(1)
  })

  it('gives back the beginning of a long output', async () => {
    const value = await bash('printf %70000d 1; printf "\\a%.0s" $(seq 60000) >&2')
    expect(value).toMatchObject({ stdout: ' '.repeat(64 * 1024), stdout_omitted_bytes: 70_000 - 64 * 1024 })
    expect(value).toMatchObject({
      stderr: expect.stringContaining('\u0007'.repeat(15_000)),
      stderr_omitted_bytes: expect.any(Number),
    })
    expect(Buffer.byteLength(JSON.stringify(value))).toBeLessThan(256 * 1024)
  })

  it('keeps nothing when a file has been changed meanwhile, whether it was read or written', async () => {
    const read = createFakeFiles(TEXTS)
    read.read = async () => createFakeFiles({ '/a.txt': 'other' }).read('/a.txt')
    await expect(bash('echo x > b; cat a.txt', read)).rejects.toThrow(
      '/a.txt has been changed meanwhile; read it again. Nothing that the command changed was kept.',
    )
    const readBefore = createFakeFiles(TEXTS)
    const before = await readBefore.read('/a.txt')
    readBefore.read = async () => {
      readBefore.changeNow('/a.txt', 'other')
      return before
    }
    await expect(bash('cat a.txt > b', readBefore)).rejects.toThrow(/changed: .*"check"/)
    expect(readBefore.texts()).toEqual({ ...TEXTS, '/a.txt': 'other' })
    const written = createFakeFiles(TEXTS)
    written.change = async () => {
      throw conflict('/a.txt has been changed meanwhile; read it again')
    }
    await expect(bash('echo x > a.txt', written)).rejects.toThrow(/read it again\. Nothing that .* was kept\./)
  })

  it('reports that its output is lost when an earlier run has changed files, and else runs again', async () => {
    const files = createFakeFiles(TEXTS)
    expect(await bash('echo 1 >> n', files, { mayHaveRun: true })).toMatchObject({ exit_code: 0 })
    expect(await bash('echo 1 >> n', files, { mayHaveRun: true })).toMatchObject({
      note: expect.stringMatching(/kept/),
    })
    files.change = async () => ({ outcome: 'repeated' })
    expect(await bash('echo 1 >> n', files)).toMatchObject({ note: expect.stringMatching(/kept/) })
    expect(files.texts()['/n']).toBe('1\n')
  })

  it('reaches neither the machine nor the network', async () => {
    const readers = [
      ...['cat /etc/passwd', 'cat /proc/self/environ', 'source /etc/passwd', '. /etc/passwd', 'find /etc/passwd'],
      ...['test -n "$(</etc/passwd)"', 'cat ../../../etc/passwd', 'xan count /etc/passwd', 'yq -p csv . /etc/passwd'],
      ...['jq -n --rawfile f /etc/passwd \\$f', 'tar cf t.tar /etc', 'awk "{print}" /etc/passwd', 'sed "" /etc/passwd'],
      ...['html-to-markdown /etc/passwd', 'cp /etc/passwd c', 'grep -r . /etc', 'sort < /etc/passwd'],
    ]
    const refused: [command: string, end: RegExp][] = [
      ...[
        'curl http://127.0.0.1',
        'wget x',
        'node -e 1',
        'python3 -c 1',
        'js-exec -c 1',
        'sqlite3 x',
        'nc -z 127.0.0.1 80',
      ].map((command): [string, RegExp] => [command, /^127 bash: \S+: (command not found|not available here)/]),
      ['awk "BEGIN{system(\\"id\\")}"', /^2 awk: system\(\) is not supported/],
      ['cat < /dev/tcp/127.0.0.1/80', /^1 .*No such file/],
      ['ln -s /etc/passwd p', /^1 .*not allowed/],
    ]
    const run = async (commands: string[], files = createFakeFiles(TEXTS)) => {
      const each = commands.map(
        (command) => `(eval '${command}') > /tmp/out 2>&1; echo "$? $(tr '\\n' ' ' < /tmp/out)"`,
      )
      const { stdout } = (await bash(`${each.join('\n')}\nenv`, files)) as { stdout: string }
      return { ends: stdout.split('\n').slice(0, commands.length), stdout }
    }
    // What reads a file of the session reads none of the machine's at the same path.
    const same = {
      '/etc': null,
      '/etc/passwd': 'echo mine\n',
      '/proc': null,
      '/proc/self': null,
      '/proc/self/environ': '',
    }
    const read = await run(readers, createFakeFiles(same))
    expect(read.ends).toEqual(readers.map(() => expect.stringMatching(/^0 /)))
    const { ends, stdout } = await run([...readers, ...refused.map(([command]) => command)])
    expect(ends).toEqual([
      ...readers.map(() => expect.stringMatching(/^[12] (.*(no such file|not found|cannot).*)?$/i)),
      ...refused.map(([, end]) => expect.stringMatching(end)),
    ])
    expect(stdout).not.toMatch(/root:|debian|ubuntu/i)
    for (const secret of Object.values(process.env).filter((secret) => (secret?.length ?? 0) > 8)) {
      expect(stdout).not.toContain(secret)
    }
  })

  it('says in its own words what is missing, also to a script that looks', async () => {
    const command = 'python3 -c 1 2>&1 | cat; sqlite3 x; command -v python3 sqlite3 || echo none'
    const python = 'bash: python3: not available here\n'
    expect(await bash(command)).toEqual({
      ...{ exit_code: 0, stdout: `${python}none\n`, stderr: 'bash: sqlite3: not available here\n' },
    })
  })

  it('moves the clock of its script when it sleeps, and the time limits of others in it', async () => {
    // Between the two, a third second may begin.
    const clock = 'a=$(date +%s); sleep 1.5 0s; sleep .5; b=$(date +%s); echo $(((b - a) / 2))'
    const limits = 'timeout 1 sleep 60; echo $?; timeout 9 sleep 0.1; echo $?; sleep x; sleep 2>&1'
    const startedAt = Date.now()
    expect(await bash(`${clock}; ${limits}; [ $SECONDS -lt 9 ] && date +%Y`)).toEqual({
      exit_code: 0,
      stdout: `1\n124\n0\nsleep: missing operand\n${new Date().getFullYear()}\n`,
      stderr: "sleep: invalid time interval 'x'\n",
    })
    expect(Date.now() - startedAt).toBeGreaterThan(3000)
  })

  it.each<[problem: string, change: FileChange]>([
    ['segment that begins with _', { do: 'make_directory', path: '/_x' }],
    ['must not have a segment . or ..', { do: 'move', from: '/a', to: '/../a' }],
    ['more bytes', { do: 'write', path: '/a', bytes: new Uint8Array(11), isBase64: false }],
  ])('does not believe a process that returns: %s', (problem, change) => {
    expect(() => checkChanges([change], 10)).toThrow(problem)
    expect(() => checkChanges([{ do: 'delete', path: '/_x' }], 10)).not.toThrow()
  })
})

describe('the number of processes', () => {
  it.each([
    [1, 1, 2],
    [2, 6, 4],
    [2, 24, 4],
    [16, 24, 16],
    [64, 6, 4],
  ])('with %i cores and %i GB is %i', (cores, gigabytes, expected) => {
    expect(fittingProcesses(cores, gigabytes * 1024 ** 3)).toBe(expected)
  })
})

describe('a command that takes too much', () => {
  const createProcesses = () => createBashProcesses({ maxProcesses: 2, ownerOf: async (id) => id })
  const processes = createProcesses()
  const none = new AbortController().signal
  const run = (command: string, signal = none, timeoutMs = 60_000) =>
    runCommand(processes, createFakeFiles(TEXTS), { command, timeoutMs, organizationId: 'o' }, signal)

  it.each<[command: string, end: RegExp | { exitCode: number; stderr: string }]>([
    ['while true; do :; done', /took too long/],
    ['sleep 1000', /took too long/],
    ['while true; do echo x >> f; done', /took too long/],
    [':(){ :|:& };:', { exitCode: 126, stderr: 'recursion' }],
    ['x=a; while true; do x=$x$x; done', { exitCode: 126, stderr: 'limit' }],
    // A busy machine may reach the limit of time first.
    ['printf %20000000d 1 | fold -w 1 | sort -r | head -n 1', /too much memory|took too long/],
    ['jq -n "[range(1e9)]" & jq -n "def f: f; f"; jq -n "\\"a\\"*1e9"', { exitCode: 126, stderr: 'limit' }],
    [
      'printf "%5000d!" | tr " " a | grep -E "^(a+)+$"; [[ $(printf "%5000d!") =~ ^(\\ +)+$ ]]',
      { exitCode: 1, stderr: '' },
    ],
    ['printf %0900000d 1 > f; for i in {1..99}; do cp f f$i; done', { exitCode: 1, stderr: 'ENOSPC' }],
  ])('%s', async (command, end) => {
    const ran = run(command, none, String(end).includes('long') ? 500 : 60_000)
    if (end instanceof RegExp) {
      await expect(ran.then(({ stderr }) => Promise.reject(new CommandStopped(stderr.text)))).rejects.toThrow(end)
    } else {
      const { exitCode, stderr } = await ran
      expect({ exitCode, stderr: stderr.text }).toEqual({
        exitCode: end.exitCode,
        stderr: expect.stringContaining(end.stderr),
      })
    }
  })

  it('holds no process while it sleeps, however many do', async () => {
    const startedAt = Date.now()
    const sleeping = Array.from({ length: 20 }, (_, index) => run(`sleep 5; echo ${index}`, none, 20_000))
    const large = run('printf %0900000d 1 > f; sleep 3; date +%s', none, 30_000)
    expect(Math.abs(Number((await large).stdout.text) * 1000 - Date.now())).toBeLessThan(10_000)
    expect((await Promise.all(sleeping)).map(({ stdout }) => stdout.text)).toEqual(sleeping.map((_, at) => `${at}\n`))
    // One after the other, they would take 100 s.
    expect(Date.now() - startedAt).toBeLessThan(40_000)
  })

  it('waits for a place as long as others need it, and its time limit begins after that', async () => {
    const long = run('end=$((SECONDS + 2)); while [ $SECONDS -lt $end ]; do :; done; echo a')
    const ended = await Promise.all([long, run('echo b', none, 1000)])
    expect(ended.map(({ stdout }) => stdout.text)).toEqual(['a\n', 'b\n'])
  })

  it('shares no process with another organization', async () => {
    const started: unknown[] = []
    const onStart = (message: unknown) => started.push(message)
    subscribe('child_process', onStart)
    const own = createProcesses()
    for (const organizationId of ['one', 'one', 'two', 'one']) {
      const job = { command: 'echo', timeoutMs: 5000, organizationId }
      await runCommand(own, createFakeFiles({}), job, none)
    }
    unsubscribe('child_process', onStart)
    expect(started).toHaveLength(2)
  })

  /** Processes that get signals, and the latest of them. */
  const signalled = createProcesses()
  let child: ChildProcess | undefined
  it.each<[signal: NodeJS.Signals, end: string]>([
    ['SIGTERM', 'done\n'],
    ['SIGINT', 'done\n'],
    ['SIGKILL', 'CommandStopped: The command needed too much memory and was stopped'],
    ['SIGABRT', 'CommandStopped: The command needed too much memory and was stopped'],
    ['SIGSEGV', 'Error: A bash process ended early: SIGSEGV.'],
  ])('whose process gets %s', async (signal, end) => {
    const onStart = (message: unknown) => {
      child = (message as { process: ChildProcess }).process
    }
    subscribe('child_process', onStart)
    const files = createFakeFiles(TEXTS)
    const { read } = files
    // It runs the command by now.
    files.read = async (path) => {
      child?.kill(signal)
      await sleep(200)
      return read(path)
    }
    const job = { command: 'cat a.txt > /dev/null; echo done', timeoutMs: 20_000, organizationId: 'o' }
    const ran = await runCommand(signalled, files, job, none).then(({ stdout }) => stdout.text, String)
    unsubscribe('child_process', onStart)
    expect(ran).toBe(end)
  })

  it('holds up nothing else, and ends when it is no longer wanted', async () => {
    const stop = new AbortController()
    const endless = ['while true; do :; done', 'sleep 99'].map((command) => run(command, stop.signal, 60_000))
    const settled = Promise.allSettled(endless)
    const loop = watchEventLoop()
    await sleep(800)
    expect(loop.stop().busyMs).toBeLessThan(250)
    stop.abort(new Error('cancelled'))
    expect(await settled).toEqual(endless.map(() => ({ status: 'rejected', reason: new Error('cancelled') })))
    expect((await run('echo still here')).stdout.text).toBe('still here\n')
  })
})
