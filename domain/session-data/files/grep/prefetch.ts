/** Takes each item from its source while the previous one is used. At most two are in memory. */
export async function* prefetch<T>(source: AsyncGenerator<T>): AsyncGenerator<T> {
  let next = source.next()
  try {
    for (let item = await next; !item.done; item = await next) {
      next = source.next()
      // A failure is reported when the item's turn comes.
      next.catch(() => {})
      yield item.value
    }
  } finally {
    // The running read holds memory until it ends.
    await next.catch(() => {})
    await source.return(undefined)
  }
}
