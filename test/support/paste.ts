type InBrowser = {
  DataTransfer: new () => { items: { add(file: File): void } }
  ClipboardEvent: new (type: string, init: object) => Event
}

/** Pastes a picture into an element, within the page. */
export function paste(element: unknown, base64: string): void {
  const { DataTransfer, ClipboardEvent } = globalThis as unknown as InBrowser
  const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0))
  const clipboardData = new DataTransfer()
  clipboardData.items.add(new File([bytes], 'pasted.png', { type: 'image/png' }))
  ;(element as EventTarget).dispatchEvent(new ClipboardEvent('paste', { clipboardData, bubbles: true }))
}
