import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { sessionQuery } from "@/shared/api/session";
import {
  checkMcpServer,
  type McpListing,
  type McpServerState,
  mcpSetupQuery,
  pinMcpServer,
  unpinMcpServer,
} from "@/shared/api/settings";
import { Badge } from "@/shared/ui/badge";
import { Button } from "@/shared/ui/button";
import { EmptyState } from "@/shared/ui/empty-state";
import { combineQueries, Loaded } from "@/shared/ui/loaded";
import { Panel } from "@/shared/ui/panel";
import { ProblemNote } from "@/shared/ui/problem-note";
import { CodeText } from "./code-text";
import styles from "./installation.module.css";
import { AddServer } from "./mcp-add";
import { ToolChanges, ToolList } from "./mcp-tools";

/** MCP servers: their pinned tools, what has changed, and adding and pinning them for the operator. */
export function McpSection() {
  const mcpSetup = useQuery(mcpSetupQuery);
  const ownSession = useQuery(sessionQuery);
  const queries = combineQueries({ setup: mcpSetup, session: ownSession });
  return (
    <div className={styles.stack}>
      <p className={styles.intro}>
        <Trans>
          A run can use tools of MCP servers, if the question allows it. Their code belongs to third parties, so the
          operator reviews the tools of a server and pins them. If a server changes its tools, runs cannot use it until
          they are reviewed again.
        </Trans>
      </p>
      <Loaded query={queries} label={t`the MCP servers`}>
        {({ setup, session }) => (
          <>
            {setup.problem && (
              <div role="alert">
                <p className={styles.problem} dir="auto">
                  {setup.problem}
                </p>
                <p className={styles.remedy} dir="auto">
                  {setup.remedy}
                </p>
              </div>
            )}
            {!setup.is_configured && <NotConfigured />}
            {setup.servers.map((server) => (
              <Server key={server.name} server={server} isOperator={session.is_operator} />
            ))}
            {setup.is_configured && setup.servers.length === 0 && !setup.problem && (
              <EmptyState title={t`There are no MCP servers`}>
                <code>offing mcp add wiki https://mcp.wiki.example/mcp --tool search</code>
              </EmptyState>
            )}
            {setup.is_configured && session.is_operator && !setup.problem && <AddServer />}
            {!session.is_operator && <OperatorNote />}
          </>
        )}
      </Loaded>
    </div>
  );
}

function NotConfigured() {
  return (
    <EmptyState title={t`MCP servers are not set up`}>
      <Trans>
        Set <code>OFFING_MCP_CONFIG=mcp.toml</code> in the environment of the API and the workers, or in{" "}
        <code>.env</code>, and restart Offing.
      </Trans>
    </EmptyState>
  );
}

/** Says how the operator gets the right to change something here. */
function OperatorNote() {
  return (
    <p className={styles.remedy}>
      <Trans>
        Only the operator adds and pins servers: with <code>offing mcp add</code> and <code>offing mcp pin</code> on the
        machine, or here, after opening the link that <code>offing login --operator</code> prints.
      </Trans>
    </p>
  );
}

function Server({ server, isOperator }: { server: McpServerState; isOperator: boolean }) {
  const check = useMutation({ mutationFn: () => checkMcpServer(server.name) });
  const { name, host, is_private, pinned_sha256, problem, secrets, tools } = server;
  return (
    <Panel
      title={name}
      level={3}
      actions={
        <Button small aria-label={t`Check ${name}`} disabled={check.isPending} onClick={() => check.mutate()}>
          {check.isPending ? t`Checking…` : t`Check now`}
        </Button>
      }
    >
      <div className={styles.stack}>
        <div className={styles.head}>
          <span className={styles.code}>{host}</span>
          {pinned_sha256 === null ? <Badge tone="sun">{t`not pinned`}</Badge> : <Badge tone="moss">{t`pinned`}</Badge>}
          {is_private && <Badge>{t`private address`}</Badge>}
          {secrets.map((secret) => (
            <Badge key={secret.name} tone={secret.is_set ? "moss" : "coral"}>
              <code>{secret.name}</code> {secret.is_set ? t`set` : t`not set`}
            </Badge>
          ))}
        </div>
        {problem && (
          <p className={styles.problem}>
            <CodeText>{t`Runs cannot use it: ${problem}.`}</CodeText>
          </p>
        )}
        <ProblemNote error={check.error} />
        {check.data ? (
          <Checked server={server} listing={check.data} isOperator={isOperator} onDone={check.reset} />
        ) : (
          <ToolList tools={tools} />
        )}
        {isOperator && pinned_sha256 !== null && !check.data && <Unpin name={name} />}
      </div>
    </Panel>
  );
}

interface CheckedProps {
  server: McpServerState;
  listing: McpListing;
  isOperator: boolean;
  onDone(): void;
}

/** What the server lists now, and pinning exactly that. */
function Checked({ server, listing, isOperator, onDone }: CheckedProps) {
  const client = useQueryClient();
  const pin = useMutation({
    mutationFn: () => pinMcpServer(server.name, listing.sha256),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: ["installation"] });
      await client.invalidateQueries({ queryKey: ["mcp-servers"] });
      onDone();
    },
  });
  // Not translated: a command.
  const pinCommand = `offing mcp pin ${server.name}`;
  if (listing.problem) {
    return (
      <div role="status">
        <p className={styles.problem} dir="auto">
          {listing.problem}
        </p>
        <p className={styles.remedy}>
          <Trans>Check that the server runs and that its variables are set, and try again.</Trans>
        </p>
      </div>
    );
  }
  if (listing.sha256 === server.pinned_sha256) {
    return (
      <>
        <p role="status">
          <Badge tone="moss">{t`unchanged since it was pinned`}</Badge>
        </p>
        <ToolList tools={listing.tools} />
      </>
    );
  }
  return (
    <div className={styles.stack}>
      {server.pinned_sha256 !== null && (
        <p role="status">
          <Badge tone="sun">{t`changed since it was pinned`}</Badge>
        </p>
      )}
      {listing.changes.length > 0 && <ToolChanges changes={listing.changes} />}
      <ToolList tools={listing.tools} />
      <p className={styles.note}>
        <Trans>These texts are those of the server. Models see them. Read them before you pin them.</Trans>
      </p>
      <ProblemNote error={pin.error} />
      {isOperator ? (
        <div className={styles.actions}>
          <Button kind="primary" disabled={pin.isPending} onClick={() => pin.mutate()}>
            {pin.isPending ? t`Pinning…` : t`Pin these tools`}
          </Button>
        </div>
      ) : (
        <p className={styles.code}>{pinCommand}</p>
      )}
    </div>
  );
}

function Unpin({ name }: { name: string }) {
  const client = useQueryClient();
  const unpin = useMutation({
    mutationFn: () => unpinMcpServer(name),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: ["installation"] });
      await client.invalidateQueries({ queryKey: ["mcp-servers"] });
    },
  });
  return (
    <div className={styles.actions}>
      <Button small disabled={unpin.isPending} onClick={() => unpin.mutate()}>
        <Trans>Remove the pin</Trans>
      </Button>
      <span className={styles.note}>
        <Trans>Runs then cannot use the server until it is pinned again.</Trans>
      </span>
      <ProblemNote error={unpin.error} />
    </div>
  );
}
