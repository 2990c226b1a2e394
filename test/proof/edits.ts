/** Change of a source file, made while it is loaded. `find` is in the file exactly once. */
export type Edit = { file: string; find: string; replace: string }

/** Applies the edits of one file to its text. Throws when one does not fit exactly once. */
export function applyEdits(text: string, edits: Edit[]): string {
  let edited = text
  for (const { file, find, replace } of edits) {
    const places = text.split(find).length - 1
    if (places !== 1) throw new Error(`${file} has ${places} times: ${find}`)
    edited = edited.replace(find, () => replace)
  }
  return edited
}

/**
 * Applies plants, and then the points that are left: a plant may have taken a point's place. Throws when an edit does not
 * fit the original text.
 */
export function instrumentText(text: string, plants: Edit[], points: Edit[]): string {
  const planted = applyEdits(text, plants)
  applyEdits(text, points)
  return applyEdits(
    planted,
    points.filter(({ find }) => planted.split(find).length === 2),
  )
}
