import "./sign-in.css";

/** For a browser without a session. */
export function SignIn() {
  return (
    <main className="sign-in">
      <h1>This browser is not signed in</h1>
      <p>Offing runs on your own machine and has no passwords. A terminal there gives you a link that works once:</p>
      <pre className="mono">offing login</pre>
      <p className="quiet">
        Open the link in this browser. <span className="mono">make up</span> prints one as well when it starts.
      </p>
    </main>
  );
}
