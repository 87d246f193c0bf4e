// SPDX-License-Identifier: MIT
// The token that a server with an auth file asks for. It stays in this tab, and
// leaves it only in a header.

const TOKEN_KEY = 'token';

class Token {
  // Calls use() when somebody has entered one.
  constructor(use) {
    byId('token-form').addEventListener('submit', (event) => {
      event.preventDefault();
      const text = byId('token-text').value.trim();
      byId('token-text').value = '';
      if (!/^[!-~]+$/.test(text)) {
        setText(byId('token-why'), 'This is not a valid access token.');
        return;
      }
      sessionStorage.setItem(TOKEN_KEY, text);
      setText(byId('token-why'), '');
      use();
    });
  }

  headers() {
    const text = sessionStorage.getItem(TOKEN_KEY);
    return text === null ? {} : {Authorization: `Bearer ${text}`};
  }

  // The server refuses the one there is, if there is one.
  ask() {
    const had = sessionStorage.getItem(TOKEN_KEY) !== null;
    if (had) {
      sessionStorage.removeItem(TOKEN_KEY);
      setText(byId('token-why'), 'The server does not know this access token.');
    }
    if (byId('token').hidden) {
      byId('token').hidden = false;
      document.body.classList.add('closed');
      document.title = 'Token needed – redlockd';
      byId('token-text').focus();
    }
  }

  // Another one is wanted.
  forget() {
    sessionStorage.removeItem(TOKEN_KEY);
  }

  accept() {
    byId('token').hidden = true;
    document.body.classList.remove('closed');
  }
}
