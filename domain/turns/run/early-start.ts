/** Start of an attempt before Temporal knows of the turn. The step ends only after that. */
export class EarlyStart {
  /** True when the step is the attempt's own from the beginning. */
  readonly holdsStep: boolean
  /** True when Temporal has the turn's workflow. */
  isKnown = false
  readonly #claim = Promise.withResolvers<void>()
  readonly #hear = Promise.withResolvers<void>()
  readonly #know = Promise.withResolvers<void>()
  readonly #goOn = Promise.withResolvers<void>()
  readonly #over = new AbortController()
  readonly known = this.#know.promise
  /** Resolves when the attempt has claimed the step, or never will. */
  readonly whenClaimed = this.#claim.promise
  /** Resolves when the model has begun to answer, a moment after it was asked, or when the attempt is over. */
  readonly whenHeard = this.#hear.promise
  /** Resolves when the attempt is over, or its activity waits for it. */
  readonly goneOn = this.#goOn.promise
  /** Aborts when the attempt is over. */
  readonly over = this.#over.signal

  constructor(holdsStep: boolean) {
    this.holdsStep = holdsStep
    if (holdsStep) this.claimed()
  }

  /** Reports that the step is claimed. */
  claimed(): void {
    this.#claim.resolve()
  }

  /** Reports that the model has begun to answer, or will take a while. */
  heard(): void {
    this.#hear.resolve()
  }

  acknowledge(): void {
    this.isKnown = true
    this.#know.resolve()
  }

  goOn(): void {
    this.#goOn.resolve()
  }

  end(): void {
    this.claimed()
    this.heard()
    this.goOn()
    this.#over.abort()
  }
}
