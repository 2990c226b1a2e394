import htm from 'htm'
import { type ComponentChildren, h, type RefObject, render, type VNode } from 'preact'
import { useEffect, useErrorBoundary, useId, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import { plain } from './parts/plain.ts'

export { computed, type Signal, signal } from '@preact/signals'
export type { ComponentChildren, RefObject, VNode }
export { render, useEffect, useErrorBoundary, useId, useLayoutEffect, useMemo, useRef, useState }

/** Creates an element. Makes its texts plain, because most are written by strangers. */
const element = (type: string, props: object | null, ...children: ComponentChildren[]): VNode =>
  h(type, props, ...children.map((child) => (typeof child === 'string' ? plain(child) : child)))

/** Templates: html`<p class="quiet">${text}</p>`. Texts are never taken for HTML. */
export const html = htm.bind(element) as (strings: TemplateStringsArray, ...values: unknown[]) => VNode
