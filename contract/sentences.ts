import type { z } from 'zod'

const MAX_ISSUES = 5

/** Describes what is wrong with a value: names the invalid fields, or `where` for the value as a whole. */
export const describeIssues = ({ issues }: Pick<z.ZodError, 'issues'>, where: string): string =>
  issues
    .slice(0, MAX_ISSUES)
    .map((issue) => sentence(issue, where))
    .join('; ')

function sentence(issue: z.core.$ZodIssue, where: string): string {
  const nested = reasonOf(issue)
  const path = [...issue.path, ...(nested?.path ?? [])].join('.')
  return `${path === '' ? where : path}: ${lowerFirst(nested?.message ?? issue.message)}`
}

/** Returns the issue that says more than "invalid": of a union's first member, or of a record's key. */
function reasonOf(issue: z.core.$ZodIssue): z.core.$ZodIssue | undefined {
  if (issue.code === 'invalid_union') return issue.errors.flat().at(0)
  return issue.code === 'invalid_key' ? issue.issues.at(0) : undefined
}

const lowerFirst = (text: string): string => text.charAt(0).toLowerCase() + text.slice(1)
