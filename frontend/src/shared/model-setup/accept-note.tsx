import { Trans } from "@lingui/react/macro";
import { CopyButton } from "../ui/copy-button";
import styles from "./model-setup.module.css";

/** What the operator must do before a server can be used. */
export function AcceptNote({ address, onCheck }: { address: string; onCheck?: () => void }) {
  // Not translated: a command.
  const command = `offing engine accept ${address}`;
  return (
    <div className={styles.accept}>
      <p>
        <Trans>
          The operator of this installation accepts the address of each model server once. Run this where Offing runs,
          or ask the operator to do it:
        </Trans>
      </p>
      <p className={styles.command}>
        <code className="mono">{command}</code>
        <CopyButton text={command}>
          <Trans>Copy</Trans>
        </CopyButton>
        {onCheck && (
          <button type="button" className="btn small" onClick={onCheck}>
            <Trans>Check again</Trans>
          </button>
        )}
      </p>
      <p>
        <Trans>
          In a checkout of the source, the command is <code className="mono">.venv/bin/offing</code>.
        </Trans>{" "}
        {!onCheck && <Trans>Then continue here.</Trans>}
      </p>
    </div>
  );
}
