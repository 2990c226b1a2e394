import { canonicalJson } from '../../../lib/canonical-json.ts'

it('canonical JSON is the same text for the same value, as in the example of RFC 8785', () => {
  const value = JSON.parse(`{
    "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
    "string": "\\u20ac$\\u000F\\u000aA'\\u0042\\u0022\\u005c\\\\\\"\\/",
    "literals": [null, true, false]
  }`)
  expect(canonicalJson(value)).toBe(
    String.raw`{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}`,
  )
  expect(canonicalJson({ b: 1, a: { d: [{}], c: 'ö' } })).toBe('{"a":{"c":"ö","d":[{}]},"b":1}')
})
