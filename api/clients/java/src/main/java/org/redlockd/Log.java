// SPDX-License-Identifier: MIT
package org.redlockd;

import java.lang.System.Logger;
import java.lang.System.Logger.Level;

/** What is not thrown is reported here. A logger that fails ends nothing: locks are kept. */
final class Log {
    private final Logger logger;

    Log(Logger logger) {
        this.logger = logger;
    }

    void info(String text) {
        write(Level.INFO, text);
    }

    void warning(String text) {
        write(Level.WARNING, text);
    }

    private void write(Level level, String text) {
        try {
            logger.log(level, text);
        } catch (RuntimeException e) {
            // there is nobody else to report it to
        }
    }
}
