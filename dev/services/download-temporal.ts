/**
 * Downloads the development server of @temporalio/testing into the given folder. Runs as a process of its own because
 * the download cannot be cancelled: the caller sets a time limit.
 */
import { mkdir } from 'node:fs/promises'
import { TestWorkflowEnvironment } from '@temporalio/testing'

const [downloadDir] = process.argv.slice(2)
if (downloadDir === undefined) throw new Error('Give the folder to download to.')
await mkdir(downloadDir, { recursive: true })
const environment = await TestWorkflowEnvironment.createLocal({
  server: { executable: { type: 'cached-download', downloadDir } },
})
await environment.teardown()
