package org.redlockd;

import java.lang.System.Logger;
import java.lang.System.Logger.Level;

/** What is not thrown is reported here. */
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
        logger.log(level, text);
    }
}
