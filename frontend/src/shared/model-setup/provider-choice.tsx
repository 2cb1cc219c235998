import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useQuery } from "@tanstack/react-query";
import { enginesQuery } from "../api/installation";
import { type ProviderKind, providerKindsQuery } from "../api/providers";
import { combineQueries, Loaded } from "../ui/loaded";
import { AcceptNote } from "./accept-note";
import { type LocalServer, listLocalServers } from "./local-servers";
import styles from "./model-setup.module.css";

interface ProviderChoiceProps {
  onChoose(kind: ProviderKind): void;
  /** A server was found on this machine, and runs may use it. */
  onServer(kind: ProviderKind, server: LocalServer): void;
}

/** The providers that can be set up: servers that were found on this machine, then services, then other servers. */
export function ProviderChoice({ onChoose, onServer }: ProviderChoiceProps) {
  const kinds = useQuery(providerKindsQuery);
  const engines = useQuery({ ...enginesQuery, staleTime: 0 });
  return (
    <Loaded query={combineQueries({ kinds, engines })} label={t`the providers`}>
      {(loaded) => {
        const servers = listLocalServers(loaded.engines);
        return (
          <div className={styles.choice}>
            {servers.length > 0 && (
              <section aria-labelledby="found-servers">
                <h4 id="found-servers" className="label">
                  <Trans>On this machine</Trans>
                </h4>
                <ul className={styles.servers}>
                  {servers.map((server) => (
                    <ServerRow
                      key={server.provider}
                      server={server}
                      kind={loaded.kinds.find(({ name }) => name === server.provider)}
                      onUse={onServer}
                      onCheck={() => engines.refetch()}
                    />
                  ))}
                </ul>
              </section>
            )}
            <KindList
              title={t`Services, with a key`}
              kinds={loaded.kinds.filter(({ is_server, needs_address }) => !is_server && !needs_address)}
              onChoose={onChoose}
            />
            <KindList
              title={t`Your own server, by its address`}
              kinds={loaded.kinds.filter(({ is_server, needs_address }) => is_server || needs_address)}
              onChoose={onChoose}
            />
          </div>
        );
      }}
    </Loaded>
  );
}

interface ServerRowProps {
  server: LocalServer;
  /** `undefined` means that this version of the server does not know it, so it cannot be used. */
  kind: ProviderKind | undefined;
  onUse(kind: ProviderKind, server: LocalServer): void;
  onCheck(): void;
}

/** A server that was found, with its models and the button that uses it. */
export function ServerRow({ server, kind, onUse, onCheck }: ServerRowProps) {
  const { provider, models, offeredAt } = server;
  if (!kind) return null;
  return (
    <li className={styles.server}>
      <span className={styles.serverName}>
        <b>{kind.title}</b>
        <span className="quiet" dir="auto">
          {offeredAt ? <Trans>answers at {offeredAt}, but is not accepted yet</Trans> : listSome(models)}
        </span>
      </span>
      {offeredAt ? (
        <AcceptNote address={offeredAt} onCheck={onCheck} />
      ) : (
        <button type="button" className="btn" aria-label={t`Use ${kind.title}`} onClick={() => onUse(kind, server)}>
          <Trans>Use this</Trans>
        </button>
      )}
      {!offeredAt && models.length === 0 && <p className="quiet">{emptyServerText(provider)}</p>}
    </li>
  );
}

/** Maximum number of models that a row names. */
const MAX_NAMES = 4;

function listSome(models: readonly string[]): string {
  const more = models.length - MAX_NAMES;
  const names = models.slice(0, MAX_NAMES).join(", ");
  return more > 0 ? t`${names} and ${more} more` : names;
}

function emptyServerText(provider: string): string {
  return provider === "ollama_chat"
    ? t`It has no model yet. Get one, for example with “ollama pull qwen3”.`
    : t`It lists no models. Start it with a model.`;
}

interface KindListProps {
  title: string;
  kinds: readonly ProviderKind[];
  onChoose(kind: ProviderKind): void;
}

function KindList({ title, kinds, onChoose }: KindListProps) {
  return (
    <section>
      <h4 className="label">{title}</h4>
      <ul className={styles.kinds}>
        {kinds.map((kind) => (
          <li key={kind.name}>
            <button type="button" className="btn" onClick={() => onChoose(kind)}>
              {kind.title}
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}
