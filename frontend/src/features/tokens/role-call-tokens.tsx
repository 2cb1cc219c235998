import { plural, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useState } from "react";
import type { RoleCall } from "@/shared/api/trajectories";
import { buildTokenRows, surpriseLevel, type TokenRow, visibleText } from "./token-rows";

/** One role call: its engine, its prompt, and its completion token by token. */
export function RoleCallTokens({ call, onPick }: { call: RoleCall; onPick(seq: number): void }) {
  const [showsTable, setShowsTable] = useState(false);
  const rows = buildTokenRows(call);
  return (
    <article className="role-call">
      <header>
        <button type="button" className="linkish" onClick={() => onPick(call.seq)}>
          <Trans>step {call.seq}</Trans>
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
            <Trans>Table</Trans>
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
      {call.quarantine ? t`quarantined` : t`trainable: ${call.trainable}`}
      {reason && <span className="quiet"> {reason}</span>}
    </span>
  );
}

function Prompt({ call }: { call: RoleCall }) {
  const tokens = call.tokens;
  const added = tokens
    ? t`${plural(tokens.prompt_ids.length, { one: "# token", other: "# tokens" })} after ${tokens.offset}`
    : "";
  if (call.messages.length === 0) return null;
  return (
    <details className="role-call-prompt">
      <summary>
        <Trans>
          Prompt <span className="quiet num">{added}</span>
        </Trans>
      </summary>
      {call.messages.map((message, nth) => (
        // Messages of a prompt never change their order.
        // biome-ignore lint/suspicious/noArrayIndexKey: see above
        <p dir="auto" key={nth}>
          <b>{message.role}</b> {message.text}
        </p>
      ))}
    </details>
  );
}

function Completion({ call, rows }: { call: RoleCall; rows: readonly TokenRow[] }) {
  if (rows.length === 0)
    return (
      <p dir="auto" className="role-call-text">
        {call.completion || t`No text.`}
      </p>
    );
  const hasNoText = rows.every((row) => row.text === null);
  return (
    <p dir="auto" className="role-call-text">
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
          <th>
            <Trans>id</Trans>
          </th>
          <th>
            <Trans>token</Trans>
          </th>
          <th>
            <Trans>trained</Trans>
          </th>
          <th>
            <Trans>log-probability</Trans>
          </th>
          <th>
            <Trans>entropy</Trans>
          </th>
          <th>
            <Trans>span</Trans>
          </th>
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={row.index}>
            <td>{row.id}</td>
            <td className="mono">{row.text === null ? "" : visibleText(row)}</td>
            <td>{row.trained ? t`yes` : t`no`}</td>
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
  const logprob = row.logprob.toFixed(4);
  if (row.trained) return t`id ${row.id}, log-probability ${logprob}${part}`;
  return t`id ${row.id}, log-probability ${logprob}, not trained${part}`;
}
