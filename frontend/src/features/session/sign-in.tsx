import "./sign-in.css";

/** Why a login link could not be used, as the server says it. */
export const LINK_PROBLEMS = ["used", "incomplete", "unchecked"] as const;
export type LinkProblem = (typeof LINK_PROBLEMS)[number];

const TITLE: Record<LinkProblem, string> = {
  used: "This login link was used before or has expired",
  incomplete: "This login link is incomplete",
  unchecked: "This login link could not be checked",
};

/** For a browser without a session. `problem`: of the link that it came with. */
export function SignIn({ problem }: { problem?: LinkProblem | undefined }) {
  return (
    <main className="sign-in">
      <h1>{problem ? TITLE[problem] : "This browser is not signed in"}</h1>
      {problem === "used" && <p>A link works once and for 15 minutes. Make a new one.</p>}
      {problem === "incomplete" && <p>Copy the whole link, with everything after “token=”, or make a new one.</p>}
      {problem === "unchecked" && <p>The server’s database did not answer. Open the same link again in a moment.</p>}
      <p>Offing runs on your own machine and has no passwords. A terminal there gives you a link that works once:</p>
      <pre className="mono">offing login</pre>
      <p className="quiet">
        Open the link in this browser. <span className="mono">make up</span> prints one as well when it starts.
      </p>
    </main>
  );
}
