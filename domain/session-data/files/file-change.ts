/** Write of a file's content. */
export type Write = {
  do: 'write'
  path: string
  bytes: Uint8Array
  isBase64: boolean
  if?: 'absent' | 'present'
  isReadonly?: boolean
  /** Set when the agent knows the content. */
  isSeen?: true
  id?: string
}

/**
 * One change of a session's files. `was` is the required id of the current content, null for a missing file. Paths are
 * valid and normalized. `check` has no other effect.
 */
export type FileChange = (
  | Write
  | { do: 'set_readonly'; path: string; isReadonly: boolean }
  | { do: 'make_directory'; path: string; id?: string }
  | { do: 'delete'; path: string; isRecursive?: boolean }
  | { do: 'move' | 'copy'; from: string; to: string; id?: string }
  | { do: 'check'; path: string; was: string | null }
) & { was?: string | null }

/** Row of session_files, as change_session_files returns it. */
export type ChangedRow = {
  id: string
  session_id: string
  path: string
  is_directory: boolean
  is_readonly: boolean
  is_base64: boolean
  size_bytes: number
  created_at: string
  updated_at: string
}

/** `file` is the file of the last change; `deleted` is the number of deleted files and directories. */
export type Changed = { outcome: 'changed'; file: ChangedRow; deleted: number }
/** An earlier attempt of the tool call changed the files without recording its result. Nothing was changed. */
export type Repeated = { outcome: 'repeated' }

/** Text file of every new session. */
export type MountedFile = { path: string; content: string }
