import { useState } from "react";
import type { Turn } from "@/shared/api/trajectories";
import { counted } from "@/shared/format/numbers";
import { surprise, type TokenRow, tokenRows, visible } from "./token-rows";

/** One role call: who answered, what it was shown, and its completion token by token. */
export function TurnTokens({ turn, onPick }: { turn: Turn; onPick(seq: number): void }) {
  const [table, setTable] = useState(false);
  const rows = tokenRows(turn);
  return (
    <article className="turn-tokens">
      <header>
        <button type="button" className="linkish" onClick={() => onPick(turn.seq)}>
          step {turn.seq}
        </button>
        <span className="mono">{turn.policy || turn.model || turn.engine}</span>
        <Use turn={turn} />
        {rows.length > 0 && (
          <button type="button" className="btn small" aria-pressed={table} onClick={() => setTable(!table)}>
            Table
          </button>
        )}
      </header>
      <Prompt turn={turn} />
      {table ? <TokenTable rows={rows} /> : <Completion turn={turn} rows={rows} />}
    </article>
  );
}

function Use({ turn }: { turn: Turn }) {
  const why = turn.quarantine || turn.trainable_reason;
  return (
    <span className={turn.quarantine ? "turn-use bad" : "turn-use"}>
      {turn.quarantine ? "set aside" : `trainable: ${turn.trainable}`}
      {why && <span className="quiet"> {why}</span>}
    </span>
  );
}

function Prompt({ turn }: { turn: Turn }) {
  const tokens = turn.tokens;
  const added = tokens ? `${counted(tokens.prompt_ids.length, "token")} after ${tokens.offset}` : "";
  if (turn.messages.length === 0) return null;
  return (
    <details className="turn-prompt">
      <summary>
        Prompt <span className="quiet num">{added}</span>
      </summary>
      {turn.messages.map((message, nth) => (
        // Messages of a prompt never change their order.
        // biome-ignore lint/suspicious/noArrayIndexKey: see above
        <p key={nth}>
          <b>{message.role}</b> {message.text}
        </p>
      ))}
    </details>
  );
}

function Completion({ turn, rows }: { turn: Turn; rows: readonly TokenRow[] }) {
  if (rows.length === 0) return <p className="turn-text">{turn.completion || "No text."}</p>;
  const unread = rows.every((row) => row.piece === null);
  return (
    <p className="turn-text">
      {unread && `${turn.completion}\n`}
      {rows.map((row) => (
        <span key={row.at} className={`tok s${surprise(row.logprob)} ${row.trained ? "" : "masked"}`} title={told(row)}>
          {row.piece ?? `${row.id} `}
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
          <th>part</th>
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={row.at}>
            <td>{row.id}</td>
            <td className="mono">{row.piece === null ? "" : visible(row)}</td>
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

function told(row: TokenRow): string {
  const part = row.span ? `, ${row.span.replaceAll("_", " ")}` : "";
  return `id ${row.id}, log-probability ${row.logprob.toFixed(4)}${row.trained ? "" : ", not trained"}${part}`;
}
