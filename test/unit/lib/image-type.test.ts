import { imageTypeOf } from '../../../lib/image-type.ts'

const latin1 = (text: string) => Buffer.from(text, 'latin1')

it.each([
  ['image/png', '\x89PNG\r\n\x1a\n\0\0\0\rIHDR'],
  ['image/jpeg', '\xff\xd8\xff\xe0\0\x10JFIF'],
  ['image/jpeg', '\xff\xd8\xff\xe1'],
  ['image/gif', 'GIF87a\x01\0'],
  ['image/gif', 'GIF89a\x01\0'],
  ['image/webp', 'RIFF\n\r\0\xffWEBPVP8 '],
  [undefined, ''],
  [undefined, '\x89PNG'],
  [undefined, ' \x89PNG\r\n\x1a\n'],
  [undefined, 'RIFF\0\0\0\0WAVE'],
  [undefined, 'RIFFWEBP'],
  [undefined, 'GIF88a'],
  [undefined, 'BM\0\0'],
  [undefined, '<svg xmlns="http://www.w3.org/2000/svg"/>'],
  [undefined, '<html>GIF89a'],
])('finds %s in %j', (type, text) => {
  expect(imageTypeOf(latin1(text))).toBe(type)
  expect(imageTypeOf(new Uint8Array(latin1(text)))).toBe(type)
})
