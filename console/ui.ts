import htm from 'htm'
import { type ComponentChildren, Fragment, h, render, type VNode } from 'preact'
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'

export { batch, computed, effect, type Signal, signal, useComputed, useSignal } from '@preact/signals'
export type { ComponentChildren, VNode }
export { Fragment, render, useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState }

/** Templates: html`<p class="quiet">${text}</p>`. Texts are never taken for HTML. */
export const html = htm.bind(h) as (strings: TemplateStringsArray, ...values: unknown[]) => VNode
