import type { LinkProblem } from "./link-problems";
import "./sign-in.css";

const TITLES: Record<LinkProblem, string> = {
  used: "This login link has been used or has expired",
  incomplete: "This login link is incomplete",
  unchecked: "This login link could not be checked",
};

/** Shown to a browser without a session. `problem` is that of the login link it came with. */
export function SignIn({ problem }: { problem?: LinkProblem | undefined }) {
  return (
    <main className="sign-in">
      <h1>{problem ? TITLES[problem] : "This browser is not signed in"}</h1>
      {problem === "used" && <p>A login link works once and expires after 15 minutes. Create a new one.</p>}
      {problem === "incomplete" && <p>Copy the whole link, with everything after “token=”, or create a new one.</p>}
      {problem === "unchecked" && <p>The server’s database did not respond. Open the same link again in a moment.</p>}
      <p>
        Offing runs on your own machine and has no passwords. Run this command in a terminal there to get a one-time
        login link:
      </p>
      <pre className="mono">offing login</pre>
      <p className="quiet">
        Open the link in this browser. <span className="mono">make up</span> also prints a link when it starts.
      </p>
    </main>
  );
}
