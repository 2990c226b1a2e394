import { call, expectError, type Json, unknownId } from '../support/http.ts'
import { newOrganization, type Organization } from '../support/shared/service.ts'

let api: Organization
beforeAll(async () => {
  api = await newOrganization()
})

describe('models', () => {
  it('lists the simulated models, one of them the default', async () => {
    const { status, body } = await call(api, 'GET', '/v1/llm-models')
    expect(status).toBe(200)
    expect(body.data.map((model: Json) => model.model_id)).toEqual(
      expect.arrayContaining(['llmsim-default', 'llmsim-latency', 'llmsim-echo', 'llmsim-script']),
    )
    expect(body.data.filter((model: Json) => model.is_default)).toMatchObject([{ model_id: 'llmsim-default' }])
  })

  it('gets each by its id', async () => {
    const { body } = await call(api, 'GET', '/v1/llm-models')
    for (const model of body.data) {
      expect(await call(api, 'GET', `/v1/llm-models/${model.id}`)).toMatchObject({ status: 200, body: model })
    }
  })

  it('answers 404 for one that is not there and 400 for what is no id', async () => {
    expectError(await call(api, 'GET', `/v1/llm-models/${unknownId('model')}`), 404, 'Model not found')
    expectError(await call(api, 'GET', '/v1/llm-models/llmsim-echo'), 400, /^id: must be model_/)
  })
})
