import htm from 'htm'
import { type ComponentChildren, h, type RefObject, render, type VNode } from 'preact'
import { useEffect, useErrorBoundary, useId, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import { plain } from './parts/plain.ts'

export { computed, effect, type Signal, signal } from '@preact/signals'
export type { ComponentChildren, RefObject, VNode }
export { render, useEffect, useErrorBoundary, useId, useLayoutEffect, useMemo, useRef, useState }

/** Attributes that are read by people. */
const READ = ['title', 'aria-label', 'alt', 'placeholder']

/** Creates an element. Makes its texts plain, because most are written by strangers. */
const element = (type: string, props: Record<string, unknown> | null, ...children: ComponentChildren[]): VNode =>
  h(type, props && plainIn(props), ...children.map((child) => (typeof child === 'string' ? plain(child) : child)))

function plainIn(props: Record<string, unknown>): Record<string, unknown> {
  for (const name of READ) if (typeof props[name] === 'string') props[name] = plain(props[name])
  return props
}

/** Templates: html`<p class="quiet">${text}</p>`. Texts are never taken for HTML. */
export const html = htm.bind(element) as (strings: TemplateStringsArray, ...values: unknown[]) => VNode
