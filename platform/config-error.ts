/** Error for an environment with which the service cannot run, with one line for each variable. */
export class ConfigError extends Error {
  override name = 'ConfigError'
}
