/**
 * Menus, popovers, tooltips and combo boxes on React Aria Components: positions, focus, keyboard, screen readers and
 * right-to-left text. The library is larger than the rest of a view, so this module is loaded when one of them is first
 * opened. Import it only through `use-overlays.ts`.
 */

import { t } from "@lingui/core/macro";
import type { ReactNode, RefObject } from "react";
import { UNSAFE_PortalProvider as PortalProvider } from "react-aria/PortalProvider";
import { Button } from "react-aria-components/Button";
import { ComboBox } from "react-aria-components/ComboBox";
import { Dialog } from "react-aria-components/Dialog";
import { I18nProvider } from "react-aria-components/I18nProvider";
import { Input } from "react-aria-components/Input";
import { Label } from "react-aria-components/Label";
import { ListBox, ListBoxItem } from "react-aria-components/ListBox";
import { Menu, MenuItem } from "react-aria-components/Menu";
import { Popover } from "react-aria-components/Popover";
import { Text } from "react-aria-components/Text";
import { Tooltip, TooltipTriggerStateContext } from "react-aria-components/Tooltip";
import { useLanguage } from "../language/language";
import type { ComboboxProps } from "./combobox";
import fieldStyles from "./field.module.css";
import type { MenuAction } from "./menu";
import styles from "./overlays.module.css";

type Trigger = RefObject<HTMLElement | null>;

/** The library has texts of its own for screen readers. They are in the language of the page, not of the browser. */
function InLanguage({ children }: { children: ReactNode }) {
  return <I18nProvider locale={useLanguage()}>{children}</I18nProvider>;
}

/**
 * Elements outside a modal dialog cannot be used while it is open, so what belongs to a button inside a dialog is put
 * into that dialog.
 */
function WithinDialog({ trigger, children }: { trigger: Trigger; children: ReactNode }) {
  return (
    <InLanguage>
      <PortalProvider getContainer={() => trigger.current?.closest("dialog") ?? document.body}>
        {children}
      </PortalProvider>
    </InLanguage>
  );
}

interface OpenProps {
  trigger: Trigger;
  label: string;
  onClose(): void;
}

export function MenuList({ trigger, label, items, onClose }: OpenProps & { items: readonly MenuAction[] }) {
  return (
    <WithinDialog trigger={trigger}>
      <Popover
        isOpen
        isNonModal
        triggerRef={trigger}
        placement="bottom end"
        offset={6}
        className={styles.popover ?? ""}
        onOpenChange={(isOpen) => !isOpen && onClose()}
      >
        <Menu aria-label={label} autoFocus="first" className={styles.menu ?? ""} onClose={onClose}>
          {items.map((item) => (
            <MenuItem
              key={item.name}
              id={item.name}
              textValue={item.name}
              className={styles.item ?? ""}
              {...(item.href !== undefined && { href: item.href, download: item.isDownload ?? false })}
              {...(item.onAction && { onAction: item.onAction })}
            >
              {item.name}
              {item.description && <small> {item.description}</small>}
            </MenuItem>
          ))}
        </Menu>
      </Popover>
    </WithinDialog>
  );
}

export function PopoverPanel({ trigger, label, onClose, children }: OpenProps & { children: ReactNode }) {
  return (
    <WithinDialog trigger={trigger}>
      <Popover
        isOpen
        isNonModal
        triggerRef={trigger}
        placement="bottom start"
        offset={6}
        className={styles.popover ?? ""}
        onOpenChange={(isOpen) => !isOpen && onClose()}
      >
        <Dialog aria-label={label} className={styles.panel ?? ""}>
          {children}
        </Dialog>
      </Popover>
    </WithinDialog>
  );
}

/** The tooltip reads its state from this context, which its own trigger would provide. */
const OPEN_TOOLTIP = { isOpen: true, open: () => undefined, close: () => undefined, shouldSkipAnimation: true };

export function TooltipBubble({ trigger, text }: { trigger: Trigger; text: string }) {
  return (
    <WithinDialog trigger={trigger}>
      <TooltipTriggerStateContext value={OPEN_TOOLTIP}>
        <Tooltip isOpen triggerRef={trigger} offset={6} className={styles.tooltip ?? ""}>
          {text}
        </Tooltip>
      </TooltipTriggerStateContext>
    </WithinDialog>
  );
}

export function ComboboxField({ label, options, value, onChange, description, placeholder }: ComboboxProps) {
  return (
    <InLanguage>
      <ComboBox
        className={fieldStyles.wrapper ?? ""}
        allowsCustomValue
        menuTrigger="focus"
        inputValue={value}
        onInputChange={onChange}
        defaultItems={options.map((name) => ({ name }))}
      >
        <Label className={fieldStyles.label ?? ""}>{label}</Label>
        <div className={styles.combobox}>
          <Input className={fieldStyles.control ?? ""} placeholder={placeholder ?? ""} />
          <Button className={styles.comboboxButton ?? ""} aria-label={t`Options of ${label}`}>
            ▾
          </Button>
        </div>
        {description && (
          <Text slot="description" className={fieldStyles.note ?? ""}>
            {description}
          </Text>
        )}
        <Popover className={styles.popover ?? ""} offset={4}>
          <ListBox<{ name: string }> className={styles.menu ?? ""}>
            {({ name }) => (
              <ListBoxItem id={name} textValue={name} className={styles.item ?? ""}>
                {name}
              </ListBoxItem>
            )}
          </ListBox>
        </Popover>
      </ComboBox>
    </InLanguage>
  );
}
