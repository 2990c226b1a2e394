/** Style sheet of the element. Pages change it by the custom properties in docs/faces/agent-chat.md, and by parts. */
export const styles = new CSSStyleSheet()

styles.replaceSync(`
:host {
  --text: var(--agent-chat-text, light-dark(#1c2024, #e6e8eb));
  --quiet: var(--agent-chat-quiet, light-dark(#5c646c, #9aa3ac));
  --background: var(--agent-chat-background, light-dark(#ffffff, #15181b));
  --raised: var(--agent-chat-raised, light-dark(#f3f5f7, #1f2428));
  --line: var(--agent-chat-line, light-dark(#d5dade, #353c43));
  --accent: var(--agent-chat-accent, light-dark(#1a5fb4, #8ab8f2));
  --on-accent: var(--agent-chat-on-accent, light-dark(#ffffff, #10151a));
  --danger: var(--agent-chat-danger, light-dark(#b3261e, #f2a09a));
  --radius: var(--agent-chat-radius, 8px);
  --gap: var(--agent-chat-gap, 0.75rem);
  background: var(--background);
  border: 1px solid var(--line);
  border-radius: var(--radius);
  box-sizing: border-box;
  color: var(--text);
  display: flex;
  flex-direction: column;
  font: var(--agent-chat-font, 15px/1.5 system-ui, sans-serif);
  height: 36rem;
  max-height: 100dvh;
  min-width: 0;
  overflow: hidden;
  overflow-wrap: anywhere;
}
:host([hidden]), [hidden] { display: none !important; }
* { box-sizing: border-box; }
p, h2, ul, ol, pre, blockquote { margin: 0; }
a { color: var(--accent); }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }

header {
  align-items: center;
  display: flex;
  gap: var(--gap);
  justify-content: space-between;
  padding: var(--gap) var(--gap) 0;
}
header:has(h2:empty):has([hidden]) { display: none; }
h2 { font-size: 1.1em; }
h2:empty { display: none; }
h2:empty + button { margin-inline-start: auto; }
[role="log"] { flex: 1; min-height: 0; overflow-y: auto; padding: var(--gap); }
[role="log"]:focus-visible { outline-offset: -2px; }
.turns, .turn, .answer, .formatted, .said, .asked, .asked form {
  display: flex;
  flex-direction: column;
  gap: var(--gap);
  min-width: 0;
}
.turns .turns { display: contents; }
.answer:empty, .formatted:empty, .foot:empty { display: none; }
.said {
  align-self: end;
  background: var(--raised);
  border-radius: var(--radius);
  max-width: 85%;
  padding: 0.5em 0.8em;
}
.said p, .formatted p, .formatted li, details p { white-space: pre-wrap; }
.formatted { align-items: stretch; }
.formatted ul, .formatted ol { padding-inline-start: 1.5em; }
.formatted li > * { white-space: pre-wrap; }
blockquote { border-inline-start: 3px solid var(--line); padding-inline-start: 0.8em; }
hr { border: 0; border-top: 1px solid var(--line); margin: 0; width: 100%; }
code { background: var(--raised); border-radius: 3px; font: 0.9em/1.5 ui-monospace, monospace; padding: 0.1em 0.25em; }
pre {
  background: var(--raised);
  border-radius: var(--radius);
  font: 0.9em/1.5 ui-monospace, monospace;
  max-height: 20rem;
  overflow: auto;
  padding: 0.6em 0.8em;
  white-space: pre;
}
pre code { background: none; font: inherit; padding: 0; }
.quiet, summary { color: var(--quiet); }
summary { cursor: pointer; }
summary code { color: var(--text); }
details > :not(summary) { margin-block-start: 0.4em; }
details div > * + * { margin-block-start: 0.4em; }
.problem { color: var(--danger); }
.foot, .row { align-items: center; display: flex; flex-wrap: wrap; gap: 0.5rem; }
.asked { border: 1px solid var(--line); border-radius: var(--radius); padding: var(--gap); }
.asked[inert] { opacity: 0.6; }
.asked label { align-items: start; display: flex; flex-direction: column; gap: 0.2em; }
.space { flex: 1; }

img { border-radius: var(--radius); display: block; max-height: 24rem; max-width: 100%; }
.picture { background: none; border: 0; padding: 0; }
button, input, select, textarea { color: inherit; font: inherit; }
button {
  border: 1px solid var(--line);
  border-radius: var(--radius);
  cursor: pointer;
  min-height: 2rem;
  padding: 0.2em 0.8em;
}
button:not(.picture) { background: var(--raised); }
button[part~="primary"] { background: var(--accent); border-color: var(--accent); color: var(--on-accent); }
textarea, select, input:not([type="checkbox"]) {
  background: var(--background);
  border: 1px solid var(--quiet);
  border-radius: var(--radius);
  padding: 0.5em 0.7em;
  width: 100%;
}
textarea { field-sizing: content; max-height: 10rem; min-height: 2.6em; resize: none; }
textarea::placeholder { color: var(--quiet); opacity: 1; }
[part="composer"] {
  border-top: 1px solid var(--line);
  display: flex;
  flex-direction: column;
  gap: 0.5rem;
  padding: var(--gap);
}
[part="attachments"] { display: flex; flex-wrap: wrap; gap: 0.5rem; list-style: none; padding: 0; }
[part="attachments"] li {
  align-items: center;
  background: var(--raised);
  border-radius: var(--radius);
  display: flex;
  gap: 0.4rem;
  padding-inline-start: 0.6em;
}
.unseen { clip-path: inset(50%); height: 1px; overflow: hidden; position: absolute; white-space: nowrap; width: 1px; }
`)
