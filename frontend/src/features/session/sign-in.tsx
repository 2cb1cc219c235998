import { i18n, type MessageDescriptor } from "@lingui/core";
import { msg, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import type { LinkProblem } from "./link-problems";
import "./sign-in.css";

const TITLES: Record<LinkProblem, MessageDescriptor> = {
  used: msg`This login link has been used or has expired`,
  incomplete: msg`This login link is incomplete`,
  unchecked: msg`This login link could not be checked`,
};

/** Shown to a browser without a session. `problem` is that of the login link it came with. */
export function SignIn({ problem }: { problem?: LinkProblem | undefined }) {
  return (
    <main className="sign-in">
      <h1>{problem ? i18n._(TITLES[problem]) : t`This browser is not signed in`}</h1>
      {problem === "used" && (
        <p>
          <Trans>A login link works once and expires after 15 minutes. Create a new one.</Trans>
        </p>
      )}
      {problem === "incomplete" && (
        <p>
          <Trans>Copy the whole link, with everything after “token=”, or create a new one.</Trans>
        </p>
      )}
      {problem === "unchecked" && (
        <p>
          <Trans>The server’s database did not respond. Open the same link again in a moment.</Trans>
        </p>
      )}
      <p>
        <Trans>
          Offing runs on your own machine and has no passwords. Run this command in a terminal there to get a one-time
          login link:
        </Trans>
      </p>
      <pre className="mono">offing login</pre>
      <p className="quiet">
        <Trans>
          Open the link in this browser. <span className="mono">make up</span> also prints a link when it starts.
        </Trans>
      </p>
    </main>
  );
}
