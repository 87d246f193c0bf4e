// SPDX-License-Identifier: MIT
package org.redlockd;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/**
 * JSON: objects are Maps, arrays Lists, integers Longs, other numbers Doubles. Deeper levels than a
 * response of redlockd may have are refused.
 */
final class Json {
    private static final int DEEPEST = 32;

    /** A value that is JSON already. */
    static final class Written {
        private final String text;

        Written(String text) {
            this.text = text;
        }

        @Override public String toString() {
            return text;
        }
    }

    private final String text;
    private int at;
    private int depth;

    private Json(String text) {
        this.text = text;
    }

    /** Throws IllegalArgumentException. */
    static Object read(String text) {
        Json reader = new Json(text);
        Object value = reader.value();
        if (reader.next() != 0) {
            throw reader.wrong();
        }
        return value;
    }

    @SuppressWarnings("unchecked") // the keys of read() are Strings
    static Map<String, Object> object(Object value) {
        return value instanceof Map ? (Map<String, Object>) value : Map.of();
    }

    static List<Integer> integers(Object value) {
        return value instanceof List ? ((List<?>) value).stream().filter(Long.class::isInstance)
            .map(one -> ((Long) one).intValue()).collect(Collectors.toUnmodifiableList())
            : List.of();
    }

    static String write(Object value) {
        if (value instanceof Map) {
            return ((Map<?, ?>) value).entrySet().stream()
                .map(one -> write(one.getKey()) + ":" + write(one.getValue()))
                .collect(Collectors.joining(",", "{", "}"));
        }
        if (value instanceof List) {
            return ((List<?>) value).stream().map(Json::write)
                .collect(Collectors.joining(",", "[", "]"));
        }
        return value instanceof String ? quoted((String) value) : String.valueOf(value);
    }

    private static String quoted(String text) {
        StringBuilder quoted = new StringBuilder("\"");
        for (char c : text.toCharArray()) {
            if (c == '"' || c == '\\') {
                quoted.append('\\').append(c);
            } else if (c < ' ' || Character.isSurrogate(c)) {
                quoted.append(String.format("\\u%04x", (int) c));
            } else {
                quoted.append(c);
            }
        }
        return quoted.append('"').toString();
    }

    /** The next character that is no space; 0: there is none. */
    private char next() {
        while (at < text.length() && " \t\r\n".indexOf(text.charAt(at)) >= 0) {
            at++;
        }
        return at < text.length() ? text.charAt(at) : 0;
    }

    private IllegalArgumentException wrong() {
        return new IllegalArgumentException("no JSON at " + at);
    }

    private void expect(char wanted) {
        if (next() != wanted) {
            throw wrong();
        }
        at++;
    }

    private boolean skips(char wanted) {
        boolean is = next() == wanted;
        at += is ? 1 : 0;
        return is;
    }

    private Object value() {
        if (depth >= DEEPEST) {
            throw wrong();
        }
        depth++;
        char first = next();
        Object value = first == '{' ? members() : first == '[' ? elements()
            : first == '"' ? string() : word();
        depth--;
        return value;
    }

    private Map<String, Object> members() {
        Map<String, Object> members = new LinkedHashMap<>();
        expect('{');
        if (skips('}')) {
            return members;
        }
        do {
            next();
            String name = string();
            expect(':');
            members.put(name, value());
        } while (skips(','));
        expect('}');
        return members;
    }

    private List<Object> elements() {
        List<Object> elements = new ArrayList<>();
        expect('[');
        if (skips(']')) {
            return elements;
        }
        do {
            elements.add(value());
        } while (skips(','));
        expect(']');
        return elements;
    }

    private String string() {
        StringBuilder string = new StringBuilder();
        expect('"');
        while (at < text.length()) {
            char c = text.charAt(at++);
            if (c == '"') {
                return string.toString();
            }
            string.append(c == '\\' ? escaped() : c);
        }
        throw wrong();
    }

    private char escaped() {
        char c = at < text.length() ? text.charAt(at++) : 0;
        int known = "bfnrt\"\\/".indexOf(c);
        if (known >= 0) {
            return "\b\f\n\r\t\"\\/".charAt(known);
        }
        if (c != 'u' || at + 4 > text.length()) {
            throw wrong();
        }
        at += 4;
        return (char) Integer.parseInt(text.substring(at - 4, at), 16);
    }

    private Object word() {
        int start = at;
        while (at < text.length() && ",]} \t\r\n".indexOf(text.charAt(at)) < 0) {
            at++;
        }
        String word = text.substring(start, at);
        if (word.matches("-?\\d{1,18}")) {
            return Long.valueOf(word);
        }
        if (word.matches("-?\\d+(\\.\\d+)?([eE][-+]?\\d+)?")) {
            return Double.valueOf(word);
        }
        switch (word) {
            case "true":
                return true;
            case "false":
                return false;
            case "null":
                return null;
            default:
                throw wrong();
        }
    }
}
