import type { FileInfo, FileStat, GrepResult, SessionFile } from 'agent-session-client'
import { isNotFound, useEvery, useLoad } from '../../load.ts'
import { confirmed } from '../../parts/dialog.ts'
import { Pieces } from '../../parts/long-text.ts'
import { Menu, type MenuItem } from '../../parts/menu.ts'
import { Problem, Quiet } from '../../parts/page.ts'
import { plain } from '../../parts/plain.ts'
import { saveFile } from '../../parts/save-file.ts'
import { Skeleton } from '../../parts/skeleton.ts'
import { type Column, Table } from '../../parts/table.ts'
import { Time } from '../../parts/time.ts'
import { link, route } from '../../router.ts'
import { api } from '../../service.ts'
import { html, useEffect, useMemo, useState, type VNode } from '../../ui.ts'
import { changedLines } from './changed-lines.ts'

/** Interval between polls for an agent's changes. */
const LOOK_MS = 3000
/** Number of characters shown at first. */
const SHOWN_CHARACTERS = 200_000
const PICTURES: Record<string, string> = {
  png: 'image/png',
  jpg: 'image/jpeg',
  jpeg: 'image/jpeg',
  gif: 'image/gif',
  webp: 'image/webp',
}

type Props = { sessionId: string }

/** Files of a session, at `#/sessions/<id>/files/<path>`. */
export function Files({ sessionId }: Props): VNode {
  const names = route.value.path.slice(3)
  const path = `/${names.join('/')}`
  const pattern = route.value.query.get('pattern')
  const at = (count: number) => link('sessions', sessionId, 'files', ...names.slice(0, count))
  return html`<section>
    <div class="row">
      <nav aria-label="Path"><a href=${at(0)}>Files</a>${names.map(
        (name, index) => html`<span key=${index}> / <a href=${at(index + 1)} dir="auto">${name}</a></span>`,
      )}</nav>
      <${Search} sessionId=${sessionId} pattern=${pattern ?? ''} />
    </div>
    ${
      pattern === null
        ? html`<${Entry} key=${path} sessionId=${sessionId} path=${path} />`
        : html`<${Matches} key=${pattern} sessionId=${sessionId} pattern=${pattern} />`
    }
  </section>`
}

const fileLink = (sessionId: string, path: string): string =>
  link('sessions', sessionId, 'files', ...path.split('/').filter(Boolean))

function Search({ sessionId, pattern }: Props & { pattern: string }): VNode {
  const submit = (event: SubmitEvent) => {
    event.preventDefault()
    const wanted = String(new FormData(event.target as HTMLFormElement).get('pattern'))
    const to = link('sessions', sessionId, 'files')
    location.hash = wanted === '' ? to : `${to}?${new URLSearchParams({ pattern: wanted })}`
  }
  return html`<form role="search" onSubmit=${submit}>
    <label>Search in files <input name="pattern" key=${pattern} defaultValue=${pattern} placeholder="regular expression" autocomplete="off" /></label>
  </form>`
}

function Matches({ sessionId, pattern }: Props & { pattern: string }): VNode {
  const { value, error } = useLoad(() => api.files.grep({ session_id: sessionId, pattern }), [pattern])
  const file = ({ path, matches }: GrepResult) => html`<section key=${path}>
    <h2><a href=${fileLink(sessionId, path)} dir="auto">${path}</a></h2>
    <ol class="lines">${matches.map(
      ({ line_number, line }) => html`<li key=${line_number} value=${line_number}><code dir="auto">${line}</code></li>`,
    )}</ol>
  </section>`
  return html`<${Problem} error=${error} />${value?.data.length === 0 && html`<${Quiet}>No line matches.<//>`}${value?.data.map(file)}
    ${value?.truncated && html`<${Quiet}>There are more matches: narrow the search.<//>`}`
}

/** Content of a path, polled while the page is visible. */
function Entry({ sessionId, path }: Props & { path: string }): VNode {
  const session_id = sessionId
  const { value, error, reload, refresh } = useLoad(
    () =>
      path === '/' ? api.files.listRootDirectory({ session_id }) : api.files.get({ session_id, path: path.slice(1) }),
    [path],
  )
  useEvery(LOOK_MS, async () => {
    if (value === undefined || 'data' in value || error !== undefined) return refresh()
    // The next poll follows a failed one.
    const stat = await api.files.stat({ session_id, path }).catch((problem: unknown) => problem)
    if (isNotFound(stat)) return refresh()
    const { updated_at, size_bytes } = stat as Partial<FileStat>
    if (updated_at !== undefined && (updated_at !== value.updated_at || size_bytes !== value.size_bytes)) refresh()
  })
  if (isNotFound(error)) return html`<${Quiet}>There is no such file.<//>`
  if (value === undefined) return html`<${error === undefined ? Skeleton : Problem} error=${error} />`
  if ('data' in value)
    return html`<${Directory} sessionId=${sessionId} path=${path} files=${value.data} reload=${reload} />`
  return html`<${File} sessionId=${sessionId} file=${value} />`
}

type Row = { file: FileInfo; depth: number }

/** Directory as a tree; its directories expand in place. */
function Directory(props: Props & { path: string; files: FileInfo[]; reload(): void }): VNode {
  const { sessionId, path, files, reload } = props
  const [opened, setOpened] = useState<string[]>([])
  const inner = useLoad(() => readDirectories(sessionId, opened), [opened, files])
  const toggle = (of: string) =>
    setOpened(opened.includes(of) ? opened.filter((one) => one !== of && !one.startsWith(`${of}/`)) : [...opened, of])
  const rowsOf = (some: FileInfo[], depth: number): Row[] =>
    some.flatMap((file) => [
      { file, depth },
      ...(opened.includes(file.path) ? rowsOf(inner.value?.get(file.path) ?? [], depth + 1) : []),
    ])
  const remove = (file: FileInfo) => async () => {
    await api.files.delete({
      session_id: sessionId,
      path: file.path.slice(1),
      recursive: file.is_directory ? 'true' : 'false',
    })
    reload()
  }
  const columns: Column<Row>[] = [
    {
      title: 'Name',
      cell: ({ file, depth }) =>
        html`${Array.from({ length: depth }, () => html`<span class="indent"></span>`)}${
          file.is_directory &&
          html`<button type="button" class="plain toggle" aria-expanded=${opened.includes(file.path)} aria-label=${`Contents of ${file.name}`}
          onClick=${() => toggle(file.path)}>${opened.includes(file.path) ? '▾' : '▸'}</button> `
        }<a href=${fileLink(sessionId, file.path)}>${file.name}${file.is_directory ? '/' : ''}</a>`,
    },
    { title: 'Size', cell: ({ file }) => (file.is_directory ? '' : sizeOf(file.size_bytes)) },
    { title: 'Changed', cell: ({ file }) => html`<${Time} at=${file.updated_at} />` },
  ]
  const items = ({ file }: Row): MenuItem[] => [
    {
      label: 'Delete',
      icon: 'trash',
      isDangerous: true,
      question: `Delete “${file.path}”${file.is_directory ? ' and everything in it' : ''}?`,
      run: remove(file),
    },
  ]
  const actions = (row: Row) => html`<${Menu} label=${`Actions for ${row.file.name}`} items=${items(row)} />`
  return html`<${Upload} sessionId=${sessionId} path=${path} onDone=${reload} />
    <${Problem} error=${inner.error} />
    <${Table} items=${rowsOf(files, 0)} keyOf=${({ file }: Row) => file.id} columns=${columns} actions=${actions} none="No files yet." />`
}

/** Lists directories by path. A directory deleted meanwhile is empty. */
async function readDirectories(session_id: string, paths: string[]): Promise<Map<string, FileInfo[]>> {
  const read = async (path: string): Promise<[string, FileInfo[]]> => {
    const found = await api.files.get({ session_id, path: path.slice(1) }).catch((error: unknown) => {
      if (!isNotFound(error)) throw error
    })
    return [path, found && 'data' in found ? found.data : []]
  }
  return new Map(await Promise.all(paths.map(read)))
}

function Upload({ sessionId, path, onDone }: Props & { path: string; onDone(): void }): VNode {
  const [state, setState] = useState<{ isBusy: boolean; error?: unknown }>({ isBusy: false })
  const upload = async (event: Event) => {
    const input = event.target as HTMLInputElement
    setState({ isBusy: true })
    try {
      for (const file of input.files ?? [])
        await store(sessionId, `${path === '/' ? '' : path}/${file.name}`, await base64Of(file))
      setState({ isBusy: false })
    } catch (error) {
      setState({ isBusy: false, error })
    }
    input.value = ''
    onDone()
  }
  return html`<p><label class="button file">Upload files
      <input class="unseen" type="file" multiple onChange=${upload} disabled=${state.isBusy} /></label></p>
    <${Problem} error=${state.error} />`
}

/** Stores a file. Asks before it replaces an existing file. */
async function store(sessionId: string, path: string, content: string): Promise<void> {
  const at = { session_id: sessionId, path: path.split('/').filter(Boolean).join('/') }
  const body = { content, encoding: 'base64' } as const
  const isThere = await api.files.stat({ session_id: sessionId, path }).then(
    () => true,
    () => false,
  )
  if (!isThere) await api.files.create({ ...at, ...body })
  else if (await confirmed({ title: `Replace “${path}”?`, action: 'Replace' }))
    await api.files.update({ ...at, ...body })
}

function File({ sessionId, file }: Props & { file: SessionFile }): VNode {
  const { path, name, size_bytes, updated_at } = file
  const picture = PICTURES[name.split('.').pop()?.toLowerCase() ?? '']
  const text = useMemo(() => (picture === undefined ? textOf(file) : undefined), [file])
  const content = useMemo(() => new Blob([bytesOf(file)], { type: picture }), [file])
  return html`<article>
    <p class="actions"><span class="quiet">${sizeOf(size_bytes)}, changed <${Time} at=${updated_at} /></span>
      <button type="button" onClick=${() => saveFile(name, content)}>Download</button></p>
    ${picture && html`<${Picture} content=${content} name=${path} />`}
    ${text !== undefined && html`<${Text} key=${sessionId + path} text=${text} />`}
    ${text === undefined && !picture && html`<${Quiet}>This file is not text: download it.<//>`}
  </article>`
}

const bytesOf = ({ content, encoding }: SessionFile): Uint8Array<ArrayBuffer> =>
  encoding === 'base64'
    ? Uint8Array.from(atob(content ?? ''), (character) => character.charCodeAt(0))
    : new TextEncoder().encode(content ?? '')

/** Returns the text of a file, or undefined for binary content. Uploaded files come as base64. */
function textOf(file: SessionFile): string | undefined {
  if (file.encoding !== 'base64') return file.content ?? ''
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytesOf(file))
    return text.includes('\0') ? undefined : text
  } catch {
    return undefined
  }
}

function Picture({ content, name }: { content: Blob; name: string }): VNode {
  const source = useMemo(() => URL.createObjectURL(content), [content])
  useEffect(() => () => URL.revokeObjectURL(source), [source])
  return html`<img class="picture" src=${source} alt=${plain(name)} />`
}

/** Text of a file. Marks lines that change while it is shown. */
function Text({ text }: { text: string }): VNode {
  const [shown, setShown] = useState({ text, changed: { from: 0, to: 0 } })
  const [isWhole, setWhole] = useState(false)
  useEffect(() => {
    if (text !== shown.text) setShown({ text, changed: changedLines(shown.text, text) })
  }, [text])
  const part = isWhole ? shown.text : shown.text.slice(0, SHOWN_CHARACTERS)
  const lines = part.split('\n')
  const { from, to } = shown.changed
  const join = (some: string[]) => some.map((line) => `${line}\n`).join('')
  return html`<pre class="text" dir="auto" tabindex="0"><${Pieces} text=${join(lines.slice(0, from))} />${
    to > from && html`<mark><${Pieces} text=${join(lines.slice(from, to))} /></mark>`
  }<${Pieces} text=${join(lines.slice(to))} /></pre>
    ${
      part.length < shown.text.length &&
      html`<button type="button" onClick=${() => setWhole(true)}>Show all ${sizeOf(shown.text.length)}</button>`
    }`
}

const UNITS = ['B', 'KiB', 'MiB', 'GiB']

export function sizeOf(bytes: number): string {
  const power = Math.min(Math.floor(Math.log2(Math.max(bytes, 1)) / 10), UNITS.length - 1)
  return `${(bytes / 1024 ** power).toLocaleString(undefined, { maximumFractionDigits: 1 })} ${UNITS[power]}`
}

const base64Of = (file: Blob): Promise<string> =>
  new Promise((resolve, reject) => {
    const reader = new FileReader()
    reader.onload = () => resolve(String(reader.result).replace(/^[^,]*,?/, ''))
    reader.onerror = () => reject(reader.error)
    reader.readAsDataURL(file)
  })
