import type { Capability } from '../capability.ts'

const README = `# Sample files

Made-up data of a small shop, to try an agent with.

| File | Content |
| --- | --- |
| orders.csv | twelve orders: date, customer, product, quantity, price of one in EUR |
| products.json | the products, with category and stock |

Questions to try: Which customer spent most? Which products should be ordered again? Write the answer into
/samples/report.md.
`

const ORDERS = `order_id,date,customer,product,quantity,unit_price_eur
1001,2026-01-04,Ada Byron,Teapot,1,24.90
1002,2026-01-05,Grace Murray,Mug,6,7.50
1003,2026-01-09,Alan Mathison,Green tea 100 g,3,8.20
1004,2026-01-12,Ada Byron,Green tea 100 g,2,8.20
1005,2026-01-20,Katherine Coleman,Kettle,1,49.00
1006,2026-02-02,Grace Murray,Teapot,2,24.90
1007,2026-02-03,Edsger Wybe,Mug,1,7.50
1008,2026-02-11,Alan Mathison,Mug,4,7.50
1009,2026-02-14,Barbara Jane,"Sampler, five teas",1,19.00
1010,2026-03-01,Katherine Coleman,Green tea 100 g,5,8.20
1011,2026-03-08,Ada Byron,Kettle,1,49.00
1012,2026-03-15,Barbara Jane,Teapot,1,24.90
`

const PRODUCTS = [
  { name: 'Teapot', category: 'tableware', unit_price_eur: 24.9, stock: 3, reorder_below: 5 },
  { name: 'Mug', category: 'tableware', unit_price_eur: 7.5, stock: 41, reorder_below: 20 },
  { name: 'Kettle', category: 'appliances', unit_price_eur: 49, stock: 8, reorder_below: 4 },
  { name: 'Green tea 100 g', category: 'tea', unit_price_eur: 8.2, stock: 12, reorder_below: 15 },
  { name: 'Sampler, five teas', category: 'tea', unit_price_eur: 19, stock: 30, reorder_below: 10 },
]

export const sampleData: Capability = {
  id: 'sample_data',
  name: 'Sample data',
  description: 'Puts sample files into each new session.',
  status: 'available',
  category: 'testing',
  icon: 'table',
  dependencies: ['session_file_system'],
  features: [],
  systemPrompt: 'This session began with sample files in /samples; /samples/README.md describes them.',
  files: [
    { path: '/samples/README.md', content: README },
    { path: '/samples/orders.csv', content: ORDERS },
    { path: '/samples/products.json', content: `${JSON.stringify(PRODUCTS, null, 2)}\n` },
  ],
  tools: [],
}
