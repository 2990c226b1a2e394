/** PNG of one red pixel. */
export const PIXEL = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==',
  'base64',
)

/** Returns the form of an upload with one file. */
export function formOf(bytes: Uint8Array, name = 'picture.png', type = 'application/octet-stream'): FormData {
  const form = new FormData()
  form.append('file', new File([new Uint8Array(bytes)], name, { type }))
  return form
}
