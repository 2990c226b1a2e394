import { createHash } from 'node:crypto'
import type { Capability, Tool } from '../capability.ts'

const CONDITIONS = ['sunny', 'partly cloudy', 'cloudy', 'rainy', 'stormy', 'snowy', 'foggy', 'windy']
const MAX_DAYS = 7
const NOTE = 'Simulated: the same for a location at all times, and no real weather.'

const location = { type: 'string', minLength: 1, maxLength: 200, description: 'A place, such as "Lisbon".' }

/** Derives the weather from the location's name, so that tests can rely on it. */
function weatherOf(place: string, day: number) {
  const [temperature = 0, humidity = 0, wind = 0, condition = 0] = createHash('sha256')
    .update(`${place.trim().toLowerCase()}:${day}`)
    .digest()
  return {
    temperature_celsius: (temperature % 45) - 10,
    humidity_percent: 20 + (humidity % 80),
    wind_kmh: wind % 60,
    condition: CONDITIONS[condition % CONDITIONS.length],
  }
}

const getWeather: Tool = {
  name: 'get_weather',
  displayName: 'Weather',
  description: 'Tells the weather of a place now. The data is simulated.',
  parameters: { type: 'object', properties: { location }, required: ['location'], additionalProperties: false },
  timeoutMs: 5000,
  mayRunAgain: true,
  run: async ({ location: place }) => ({
    value: { location: place, ...weatherOf(String(place), 0), simulated: true, note: NOTE },
  }),
}

const getForecast: Tool = {
  name: 'get_forecast',
  displayName: 'Weather forecast',
  description: `Tells the weather of a place for the next days, at most ${MAX_DAYS}. The data is simulated.`,
  parameters: {
    type: 'object',
    properties: {
      location,
      days: { type: 'integer', minimum: 1, maximum: MAX_DAYS, description: 'How many days. Default: 3.' },
    },
    required: ['location'],
    additionalProperties: false,
  },
  timeoutMs: 5000,
  mayRunAgain: true,
  async run({ location: place, days = 3 }) {
    const forecast = Array.from({ length: Number(days) }, (_, index) => ({
      day: index + 1,
      ...weatherOf(String(place), index + 1),
    }))
    return { value: { location: place, forecast, simulated: true, note: NOTE } }
  },
}

export const testWeather: Capability = {
  id: 'test_weather',
  name: 'Test: weather',
  description: 'Two tools with simulated weather, for testing agents and clients.',
  status: 'available',
  category: 'testing',
  icon: 'cloud-sun',
  dependencies: [],
  features: [],
  tools: [getWeather, getForecast],
}
