import { readdirSync, readFileSync } from 'node:fs'

describe('the client and the console', () => {
  const files = ['client/src', 'console'].flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((file) => `${folder}/${file}`),
  )

  it('decide by codes and fields, never by sentences', () => {
    const reads = /\bmessage\.(startsWith|includes|match|search)\(|\breason === '/
    const sources = files.filter((file) => file.endsWith('.ts') && !file.includes('/generated/'))
    expect(sources.length).toBeGreaterThan(50)
    expect(sources.filter((file) => reads.test(readFileSync(file, 'utf8')))).toEqual([])
  })
})
