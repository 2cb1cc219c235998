import { useState } from "react";
import type { RoleCall } from "@/shared/api/trajectories";
import { pluralize } from "@/shared/format/numbers";
import { buildTokenRows, surpriseLevel, type TokenRow, visibleText } from "./token-rows";

/** One role call: its engine, its prompt, and its completion token by token. */
export function RoleCallTokens({ call, onPick }: { call: RoleCall; onPick(seq: number): void }) {
  const [showsTable, setShowsTable] = useState(false);
  const rows = buildTokenRows(call);
  return (
    <article className="role-call">
      <header>
        <button type="button" className="linkish" onClick={() => onPick(call.seq)}>
          step {call.seq}
        </button>
        <span className="mono">{call.policy || call.model || call.engine}</span>
        <Trainability call={call} />
        {rows.length > 0 && (
          <button
            type="button"
            className="btn small"
            aria-pressed={showsTable}
            onClick={() => setShowsTable(!showsTable)}
          >
            Table
          </button>
        )}
      </header>
      <Prompt call={call} />
      {showsTable ? <TokenTable rows={rows} /> : <Completion call={call} rows={rows} />}
    </article>
  );
}

function Trainability({ call }: { call: RoleCall }) {
  const reason = call.quarantine || call.trainable_reason;
  return (
    <span className={call.quarantine ? "role-call-trainability quarantined" : "role-call-trainability"}>
      {call.quarantine ? "quarantined" : `trainable: ${call.trainable}`}
      {reason && <span className="quiet"> {reason}</span>}
    </span>
  );
}

function Prompt({ call }: { call: RoleCall }) {
  const tokens = call.tokens;
  const added = tokens ? `${pluralize(tokens.prompt_ids.length, "token")} after ${tokens.offset}` : "";
  if (call.messages.length === 0) return null;
  return (
    <details className="role-call-prompt">
      <summary>
        Prompt <span className="quiet num">{added}</span>
      </summary>
      {call.messages.map((message, nth) => (
        // Messages of a prompt never change their order.
        // biome-ignore lint/suspicious/noArrayIndexKey: see above
        <p key={nth}>
          <b>{message.role}</b> {message.text}
        </p>
      ))}
    </details>
  );
}

function Completion({ call, rows }: { call: RoleCall; rows: readonly TokenRow[] }) {
  if (rows.length === 0) return <p className="role-call-text">{call.completion || "No text."}</p>;
  const hasNoText = rows.every((row) => row.text === null);
  return (
    <p className="role-call-text">
      {hasNoText && `${call.completion}\n`}
      {rows.map((row) => (
        <span
          key={row.index}
          className={`tok s${surpriseLevel(row.logprob)} ${row.trained ? "" : "masked"}`}
          title={describeToken(row)}
        >
          {row.text ?? `${row.id} `}
        </span>
      ))}
    </p>
  );
}

function TokenTable({ rows }: { rows: readonly TokenRow[] }) {
  return (
    <table className="tok-table num">
      <thead>
        <tr>
          <th>id</th>
          <th>token</th>
          <th>trained</th>
          <th>log-probability</th>
          <th>entropy</th>
          <th>span</th>
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={row.index}>
            <td>{row.id}</td>
            <td className="mono">{row.text === null ? "" : visibleText(row)}</td>
            <td>{row.trained ? "yes" : "no"}</td>
            <td>{row.logprob.toFixed(4)}</td>
            <td>{row.entropy === null ? "" : row.entropy.toFixed(3)}</td>
            <td>{row.span.replaceAll("_", " ")}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function describeToken(row: TokenRow): string {
  const part = row.span ? `, ${row.span.replaceAll("_", " ")}` : "";
  return `id ${row.id}, log-probability ${row.logprob.toFixed(4)}${row.trained ? "" : ", not trained"}${part}`;
}
