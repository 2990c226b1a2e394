import { ApiError, type Client, type InputContentPart } from 'agent-session-client'
import { button, h } from './dom.ts'
import { plain } from './plain.ts'

/** Images of the next message. They are uploaded when they are chosen. */
export type Attachments = {
  element: HTMLElement
  add(files: Iterable<File>): void
  /** Returns the uploaded images and removes them here; undefined while one is being uploaded. */
  take(): InputContentPart[] | undefined
}

const MAX_IMAGES = 10
const TYPE = /^image\/(?:png|jpeg|gif|webp)$/

export function createAttachments(client: () => Client, onFocusLost: () => void): Attachments {
  const element = h('ul', { part: 'attachments', 'aria-label': 'Images', hidden: true })
  const images = new Map<HTMLElement, InputContentPart | 'uploading' | 'failed'>()
  const remove = (item: HTMLElement) => {
    images.delete(item)
    item.remove()
    element.hidden = images.size === 0
  }
  const addOne = async (file: File) => {
    const name = plain(file.name)
    const state = h('span', { role: 'status' }, 'uploading…')
    const removal = () => {
      remove(item)
      onFocusLost()
    }
    const item = h(
      'li',
      {},
      h('span', {}, name),
      ' ',
      state,
      button('remove', '×', removal, { 'aria-label': `Remove ${name}` }),
    )
    images.set(item, 'uploading')
    element.append(item)
    element.hidden = false
    try {
      const { id, filename } = await client().images.upload({ file })
      if (images.has(item)) images.set(item, { type: 'image_file', image_id: id, filename })
      state.textContent = ''
    } catch (error) {
      if (images.has(item)) images.set(item, 'failed')
      state.className = 'problem'
      state.textContent = error instanceof ApiError ? error.message : 'could not be uploaded'
    }
  }
  return {
    element,
    add: (files) => {
      for (const file of files) if (TYPE.test(file.type) && images.size < MAX_IMAGES) void addOne(file)
    },
    take: () => {
      const all = [...images.values()]
      if (all.includes('uploading')) return undefined
      for (const item of [...images.keys()]) remove(item)
      return all.filter((image) => typeof image === 'object')
    },
  }
}
