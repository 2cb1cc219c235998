import type { Search } from "@/shared/routing/address";
import { useSearch } from "@/shared/routing/routing";
import { STORIES, type Story } from "./stories";
import styles from "./stories-page.module.css";

/** How a story is shown. */
const FRAMES = [
  { name: "light", theme: "light", dir: "ltr" },
  { name: "dark", theme: "dark", dir: "ltr" },
  { name: "phone", theme: "light", dir: "ltr" },
  { name: "right to left", theme: "dark", dir: "rtl" },
] as const;

const readStory = ({ story }: Search): unknown => story;

/** Every primitive in both themes, at the width of a phone and in both text directions. `?story=Menu` shows one. */
export function StoriesPage() {
  const only = useSearch(readStory);
  const shown = STORIES.filter(({ name }) => typeof only !== "string" || name === only);
  return (
    <main className={styles.page}>
      <h1>Stories</h1>
      {shown.map((story) => (
        <section key={story.name} aria-label={story.name}>
          <h2>{story.name}</h2>
          <div className={styles.frames}>
            {FRAMES.map((frame) => (
              <Frame key={frame.name} frame={frame} story={story} />
            ))}
          </div>
        </section>
      ))}
    </main>
  );
}

function Frame({ frame, story }: { frame: (typeof FRAMES)[number]; story: Story }) {
  return (
    <div className={styles.frame} data-frame={frame.name} dir={frame.dir} style={{ colorScheme: frame.theme }}>
      {story.render()}
    </div>
  );
}
