import htm from 'htm'
import { type ComponentChildren, h, type RefObject, render, type VNode } from 'preact'
import { useEffect, useErrorBoundary, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'

export { computed, type Signal, signal } from '@preact/signals'
export type { ComponentChildren, RefObject, VNode }
export { render, useEffect, useErrorBoundary, useLayoutEffect, useMemo, useRef, useState }

/** Templates: html`<p class="quiet">${text}</p>`. Texts are never taken for HTML. */
export const html = htm.bind(h) as (strings: TemplateStringsArray, ...values: unknown[]) => VNode
